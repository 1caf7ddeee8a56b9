#include "berth/render/cells.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"

namespace berth::render {
namespace {

TEST(Cells, CountWhatATerminalShows) {
  EXPECT_EQ(cells("abc"), 3U);
  EXPECT_EQ(cells("\u00e9t\u00e9"), 3U);
  EXPECT_EQ(cells("e\u0301"), 1U) << "an accent stands upon its letter";
  EXPECT_EQ(cells("\u6f22\u5b57"), 4U);
  EXPECT_EQ(cells("\U0001f600"), 2U);
}

TEST(Cells, CutLeavesWholeCharactersAndSaysThatMoreFollows) {
  EXPECT_EQ(cut("abcdef", 6), "abcdef");
  EXPECT_EQ(cut("abcdef", 5), "abcd…");
  EXPECT_EQ(cut("abcdef", 1), "…");
  EXPECT_EQ(cut("abcdef", 0), "");
  EXPECT_EQ(cut("\u6f22\u5b57\u6f22", 5), "\u6f22\u5b57…");
  EXPECT_EQ(cut("\u6f22\u5b57\u6f22", 4), "\u6f22…");
  EXPECT_EQ(cut("abcdef", 3, 2), "cd…");
  EXPECT_EQ(cut("abcdef", 9, 4), "ef");
  EXPECT_EQ(cut("abc", 9, 7), "");
}

TEST(Cells, FitFillsUp) {
  EXPECT_EQ(fit("ab", 4), "ab  ");
  EXPECT_EQ(fit("ab", 4, true), "  ab");
  EXPECT_EQ(fit("\u6f22\u5b57\u6f22", 4), "\u6f22… ");
}

TEST(Cells, NothingInALineIsAControlCharacter) {
  EXPECT_EQ(one_line("a\x1b[2J\nb\tc\rd\x7f"), "a^[[2J^Jb^Ic^Md^?");
  EXPECT_EQ(one_line("a\u009b2Jb"), "a<9b>2Jb") << "CSI in one byte, as UTF-8";
  EXPECT_EQ(one_line("a\x9b"
                     "2J"),
            "a?2J");
  EXPECT_EQ(one_line("a\u202eb\u2066c"), "a<202e>b<2066>c")
      << "these turn the direction of writing";
}

TEST(Cells, WhateverComesALineFitsAndControlsNothing) {
  Rng rng(3);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes;
    for (auto left = rng.below(24); left > 0; --left)
      bytes += static_cast<char>(rng.below(2) == 0 ? rng.below(256) : 0x1b + rng.below(0x70));
    const std::string line = one_line(bytes);
    for (const char c : line) EXPECT_FALSE((c >= 0 && c < 0x20) || c == 0x7f);
    for (std::size_t at = 0; (at = line.find('\xc2', at)) != std::string::npos; ++at)
      EXPECT_GE(static_cast<unsigned char>(line[at + 1]), 0xa0) << "C1 controls";
    const std::size_t width = rng.below(12);
    EXPECT_EQ(cells(fit(line, width)), width);
    EXPECT_LE(cells(cut(line, width, rng.below(9))), width);
  }
}

}  // namespace
}  // namespace berth::render
