#include "berth/base/visible.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Visible, ControlsAreShownAndTextStays) {
  EXPECT_EQ(Visible()("a\tb\r\nc ü – 漢 🙂"), "a\tb\r\nc ü – 漢 🙂");
  EXPECT_EQ(Visible()("\x1b]0;owned\a"), "^[]0;owned^G");
  EXPECT_EQ(Visible()(std::string_view("\0\b\x7f", 3)), "^@^H^?");
  EXPECT_EQ(Visible()("\xc2\x9b[31m \xc2\xa0"), "<9b>[31m \xc2\xa0") << "as one character";
  EXPECT_EQ(Visible()("\x9b[31m \xff"), "<9b>[31m \xff") << "as one byte";
}

TEST(Visible, TextThatIsShownWholeKeepsLineEndsAndTabsOnly) {
  EXPECT_EQ(visible_text("a\tb\n\x1b]0;owned\a\rc ü – 漢 🙂"), "a\tb\n^[]0;owned^G^Mc ü – 漢 🙂");
  EXPECT_EQ(visible_text("\u202egpj.exe \u2066 \u200f \u061c"),
            "<202e>gpj.exe <2066> <200f> <61c>");
  EXPECT_EQ(visible_text("\x9b[31m \xff\xc2\x85"), "<9b>[31m \xff<85>");
  EXPECT_EQ(visible_text(visible_text("\x1b\r\u202e")), visible_text("\x1b\r\u202e"));
  EXPECT_EQ(visible_text(""), "");
}

TEST(Visible, JsonKeepsItsValues) {
  EXPECT_EQ(visible_json("{\"a\": \"\u202e \u0085 ü\"}\n"), "{\"a\": \"\\u202e \\u0085 ü\"}\n");
  EXPECT_EQ(visible_json("[\"\x7f\"]"), "[\"\\u007f\"]");
}

TEST(Visible, ACharacterMayEndInTheNextPart) {
  Visible visible;
  EXPECT_EQ(visible("\xc2"), "");
  EXPECT_EQ(visible("\x9b[0m\xe6"), "<9b>[0m\xe6");
  EXPECT_EQ(visible("\xbc"), "\xbc");
  EXPECT_EQ(visible("\xa2\xc2"), "\xa2");
  EXPECT_EQ(visible("x"), "\xc2x");
}

}  // namespace
}  // namespace berth
