#include "berth/cli/visible.h"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

TEST(Visible, ControlsAreShownAndTextStays) {
  EXPECT_EQ(Visible()("a\tb\r\nc ü – 漢 🙂"), "a\tb\r\nc ü – 漢 🙂");
  EXPECT_EQ(Visible()("\x1b]0;owned\a"), "^[]0;owned^G");
  EXPECT_EQ(Visible()(std::string_view("\0\b\x7f", 3)), "^@^H^?");
  EXPECT_EQ(Visible()("\xc2\x9b[31m \xc2\xa0"), "<9b>[31m \xc2\xa0") << "as one character";
  EXPECT_EQ(Visible()("\x9b[31m \xff"), "<9b>[31m \xff") << "as one byte";
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
}  // namespace berth::cli
