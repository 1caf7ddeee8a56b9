#include "berth/base/broken_yaml.h"

#include <gtest/gtest.h>

#include "berth/base/document.h"
#include "berth/base/near_names.h"
#include "berth/base/text.h"

namespace berth {
namespace {

TEST(BrokenYaml, NamesTheMistakeAndItsLine) {
  constexpr std::string_view kCases[][2] = {
      {"a:\n  b: 'x\nc: y\n", "f:2: the quote ' that begins here is not closed"},
      {"a:\n  b: 'x\n  c: 'y'\n", "f:2: the quote ' that begins here is not closed"},
      {"a: \"x\n", "f:1: the quote \" that begins here is not closed"},
      {"a: 'it''s\n", "f:1: the quote ' that begins here is not closed"},
      {"a: {b: 1\nc: 2\n", "f:1: the '{' that begins here is not closed: expected '}'"},
      {"a: {b: [1}\n", "f:1: '}' closes the '[' of line 1: expected ']'"},
      {"a: {b} c\n",
       "f:1: 'c' follows the closed bracket of a value; put all of the value in "
       "quotes"},
      {"a: | # text\n  it's [not\n\tb\nc: 'x' y\n",
       "f:4: 'y' follows the closed quote of a value; put all of the value in other quotes"},
      {"# it's\na: b: c\n", "f:2: quote a value that contains ': ': a: 'b: c'"},
      {"a:\n    b: 1\n  c: 2\n",
       "f:3: 'c' is in column 3, where no key above it begins; indent all keys of a map equally"},
      {"a\n  b: 1\n", "f:1: 'a': a ':' is missing after it"},
      {"a: 1\nb\nc: 2\n", "f:2: 'b': a ':' is missing after it"},
      {"a: \"\\'\"\n",
       "f:1: a: within double quotes '\\' begins an escape; in single quotes it stays as it is"},
      {"in: [a, ::1]\n",
       "f:1: within [...] and {...}, do not leave out a value between commas, and quote a value "
       "that begins with ':'"},
      {"[a,,b]\n",
       "f:1: within [...] and {...}, do not leave out a value between commas, and quote a value "
       "that begins with ':'"},
      {"in: {a:}\n", "f:1: within {...}, write a blank after ':', or quote the value"},
      {"in:\n-\ta\n", "f:2: a tab follows '-': write a blank"},
      {"%TAG ! x\na: 1\n",
       "f:1: begins with '%': YAML keeps such lines for itself; remove it, or indent it"},
      {"a: `x`\n", "f:1: quote a value that begins with '`': a: '`x`'"}};
  for (const auto& [text, message] : kCases) {
    const auto field = Field::parse(text, "f");
    EXPECT_EQ(field ? "nothing" : field.error().message, message) << text;
  }
}

/// Whatever is cut off or put in, what is said is ours, and names a line that there is.
TEST(BrokenYaml, SaysNothingOfTheLibrarysOwn) {
  const std::string whole =
      "name: f\nsteps:\n  a:\n    run: \"x 'y'\" # z\n    in: {b: [c, 'd''e'], f: g}\n  h:\n    - "
      "i\n"
      "    - |\n      j: k\n";
  for (const char put : std::string_view("\0'\"[]{}:,-#&*!|>@%\t\n", 20))
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string text = whole;
      if (put == '\0')
        text.resize(at);
      else
        text.insert(at, 1, put);
      const auto field = Field::parse(text, "f");
      if (field) continue;
      const auto& message = field.error().message;
      for (const auto raw : {"illegal", "not found", "unknown token", "not YAML", "bad "})
        EXPECT_EQ(message.find(raw), std::string::npos) << message << '\n' << text;
      const int line = std::atoi(message.c_str() + 2);
      EXPECT_GE(line, 1) << message;
      EXPECT_LE(line, static_cast<int>(split(text, '\n').size())) << message << '\n' << text;
    }
}

TEST(BrokenYaml, AClosedQuoteIsClosed) {
  for (const std::string_view text : {"a: 'x'", "a: \"\\\"\"", "'a': b", "a: &x 'b\n  c'", "ü: 'ä'",
                                      "a: '''' # '", "\xEF\xBB\xBF'a': 'b'"})
    EXPECT_TRUE(Field::parse(text, "f")) << text;
  EXPECT_FALSE(Field::parse("ü: ä\nö: 'ß\n", "f"));
  EXPECT_FALSE(Field::parse("a: \"\\\"\n", "f"));
}

TEST(NearNames, WordsOfOtherToolsAreKnown) {
  constexpr std::array<std::string_view, 4> kKeys{"run", "in", "out", "resources"};
  EXPECT_EQ(meant_key("outputs", kKeys), "out");
  EXPECT_EQ(meant_key("Command", kKeys), "run");
  EXPECT_EQ(meant_key("resorces", kKeys), "resources");
  EXPECT_EQ(meant_key("depends_on", kKeys), "") << "needs is not among them";
  EXPECT_EQ(meant_resource("memory"), "mem");
  EXPECT_EQ(meant_resource("licence"), "");
}

}  // namespace
}  // namespace berth
