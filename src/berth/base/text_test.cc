#include "berth/base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "berth/testing/shell.h"

namespace berth {
namespace {

using Views = std::vector<std::string_view>;

TEST(Text, TrimTakesBlanksOfAllKindsOffBothEnds) {
  constexpr std::string_view kCases[][2] = {
      {"", ""}, {" \t\r\n\v\f", ""}, {"a", "a"}, {" a  b\n", "a  b"}, {"\xa0z", "\xa0z"}};
  for (const auto& [text, trimmed] : kCases) EXPECT_EQ(trim(text), trimmed);
}

TEST(Text, LowerChangesAsciiLettersOnly) {
  EXPECT_EQ(lower("AZaz09@[`{É\xc4"), "azaz09@[`{É\xc4");
}

TEST(Text, SplitsAndJoins) {
  struct Case {
    std::string_view text;
    Views parts;
  };
  for (const auto& [text, parts] :
       {Case{"", {""}}, Case{",", {"", ""}}, Case{"a", {"a"}}, Case{"a,,b,", {"a", "", "b", ""}},
        Case{std::string_view(",\0", 2), {"", std::string_view("\0", 1)}}}) {
    EXPECT_EQ(split(text, ','), parts);
    EXPECT_EQ(join(std::vector<std::string>(parts.begin(), parts.end()), ","), text);
  }
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(words(" \t a  bc\nd "), (Views{"a", "bc", "d"}));
  EXPECT_EQ(words(" "), Views{});
}

TEST(Text, ClipIsFitForAMessage) {
  struct Case {
    std::string_view text;
    std::size_t most;
    std::string_view clipped;
  };
  constexpr std::array kCases{Case{"", 0, ""},
                              Case{"four", 4, "four"},
                              Case{"fiver", 4, "five…"},
                              Case{"a\n\x1b[2J\x7f", 80, "a\\x0a\\x1b[2J\\x7f"},
                              Case{"\xc2\x9b", 80, "\\x9b"},  // a terminal's "escape [" in UTF-8
                              Case{"\xc2\xa0\xff", 80, "\xc2\xa0?"},
                              Case{"aé", 2, "a…"},
                              Case{"€€", 5, "€…"},
                              Case{"\x80\x80\x80\x80\x80", 4, "?…"},
                              Case{std::string_view("\0", 1), 80, "\\x00"}};
  for (const auto& [text, most, clipped] : kCases) EXPECT_EQ(clip(text, most), clipped);
}

TEST(Text, NearestIsTheOneThatWasMeant) {
  constexpr std::string_view kKnown[] = {"name", "run", "params", "parallel", "timeout", "n"};
  constexpr std::string_view kCases[][2] = {{"parms", "params"},    {"paralell", "parallel"},
                                            {"Timeout", "timeout"}, {"time-out", "timeout"},
                                            {"nmae", "name"},       {"rnu", ""},
                                            {"gpus_wanted", ""},    {"x", "n"},
                                            {"RUN", "run"}};
  for (const auto& [text, meant] : kCases) EXPECT_EQ(nearest(text, kKnown), meant) << text;
  EXPECT_EQ(nearest(std::string(100'000, 'n'), kKnown), "");
  EXPECT_EQ(nearest("name", {}), "");
}

TEST(Text, ShellQuoteLeavesPlainWordsBare) {
  constexpr std::string_view kPlain = "AZaz09_@%+=:,./-";
  EXPECT_EQ(shell_quote(kPlain), kPlain);
  for (int c = 1; c < 256; ++c) {
    const std::string text(1, static_cast<char>(c));
    const bool plain = std::isalnum(c) != 0 || kPlain.find(text) != std::string_view::npos;
    EXPECT_EQ(shell_quote(text) == text, plain) << c;
  }
}

TEST(Text, TheShellReadsBackWhatWasQuoted) {
  Rng rng(1);
  for (int round = 0; round < 10; ++round) {
    std::vector<std::string> values{"", "it's", "''", "-n", "~", "a\nb\n"};
    while (values.size() < 200) values.push_back(hostile_value(rng));
    std::string script = "printf '%s\\000'";
    for (const auto& value : values) script += " " + shell_quote(value);
    EXPECT_EQ(shell_words(script), values);
  }
}

/// Valid or not by the table of the standard (Unicode 15, table 3-7), without any arithmetic.
std::size_t sequence_length(std::string_view text) {
  struct Row {
    unsigned char first_low, first_high, second_low, second_high;
    std::size_t length;
  };
  constexpr Row kRows[] = {
      {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
      {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
      {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
  const auto within = [&](std::size_t at, unsigned char low, unsigned char high) {
    const auto byte = static_cast<unsigned char>(text[at]);
    return byte >= low && byte <= high;
  };
  for (const auto& row : kRows) {
    if (!within(0, row.first_low, row.first_high)) continue;
    if (row.length == 1) return 1;
    if (text.size() < row.length || !within(1, row.second_low, row.second_high)) return 0;
    for (std::size_t i = 2; i < row.length; ++i)
      if (!within(i, 0x80, 0xbf)) return 0;
    return row.length;
  }
  return 0;
}

TEST(Text, ValidUtf8KeepsWhatTheStandardAllowsAndMarksEachOtherByte) {
  constexpr std::string_view kEdges =
      "\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff"
      "a";
  Rng rng(2);
  for (int round = 0; round < 100'000; ++round) {
    std::string text;
    for (std::uint64_t left = rng.below(7); left > 0; --left)
      text += kEdges[rng.below(kEdges.size())];
    std::string expected;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = sequence_length(std::string_view(text).substr(at));
      expected += length == 0 ? "?" : text.substr(at, length);
      at += std::max<std::size_t>(length, 1);
    }
    ASSERT_EQ(valid_utf8(text), expected);
  }
}

}  // namespace
}  // namespace berth
