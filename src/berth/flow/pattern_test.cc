#include "berth/flow/pattern.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"

namespace berth::flow {
namespace {

Parts parts(std::string_view pattern, std::string_view path) {
  return parts_of(pattern, path).value_or(Parts{{"none", ""}});
}

TEST(Pattern, NamesThePartsOfAPath) {
  EXPECT_EQ(parts("reads/{sample}_{lane}.fastq", "reads/a_b_L1.fastq"),
            (Parts{{"sample", "a_b"}, {"lane", "L1"}}))
      << "earlier ones greedy";
  EXPECT_EQ(parts("{a}{b}", "xyz"), (Parts{{"a", "xy"}, {"b", "z"}})) << "none is empty";
  EXPECT_EQ(parts("{s}/{s}.txt", "a/a.txt"), (Parts{{"s", "a"}}));
  EXPECT_FALSE(parts_of("{s}/{s}.txt", "a/b.txt"));
  EXPECT_EQ(parts("{s}{s}", "abab"), (Parts{{"s", "ab"}}));
  EXPECT_FALSE(parts_of("{s}.txt", ".txt"));
  EXPECT_FALSE(parts_of("{s}.txt", "a/b.txt")) << "a part has no slash";
  EXPECT_EQ(parts("d/**/{s}.x", "d/e/f/s.x"), (Parts{{"s", "s"}}));
  EXPECT_EQ(parts("d/**/{s}.x", "d/s.x"), (Parts{{"s", "s"}}));
  EXPECT_EQ(parts("{s}[0-9]*.t", "a1b.t"), (Parts{{"s", "a"}}));
  EXPECT_EQ(parts("{s}?.t", "abc.t"), (Parts{{"s", "ab"}}));
  EXPECT_EQ(parts("{}{s", "{}{s"), Parts{}) << "braces that hold no name are themselves";
}

TEST(Pattern, IsAGlobWithoutItsNames) {
  EXPECT_EQ(glob_of("reads/{sample}_{lane}*[{]x"), "reads/*_**[{]x");
  EXPECT_EQ(glob_of("a/b"), "a/b");
}

/// What a pattern gives, put in its place, is the path again.
TEST(Pattern, PartsMakeThePathAgain) {
  Rng rng(7);
  const auto text = [&](std::string_view letters, std::uint64_t most) {
    std::string made;
    for (auto left = 1 + rng.below(most); left > 0; --left)
      made += letters[rng.below(letters.size())];
    return made;
  };
  int matched = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string pattern = "{a}" + text("ab_", 2) + "{b}";
    if (rng.below(2) == 0) pattern += text("ab_/", 2) + "{a}";
    const std::string path = text("ab_/", 8);
    const auto found = parts_of(pattern, path);
    if (!found) continue;
    ++matched;
    std::string again = pattern;
    for (const auto& [name, value] : *found)
      for (auto at = again.find("{" + name + "}"); at != std::string::npos;
           at = again.find("{" + name + "}"))
        again.replace(at, name.size() + 2, value);
    EXPECT_EQ(again, path) << pattern;
  }
  EXPECT_GT(matched, 500);
}

TEST(Pattern, ManyPartsTakeNoExponentialTime) {
  EXPECT_FALSE(parts_of("{a}{b}{c}{d}{e}{f}{g}{h}!", std::string(400, 'x')));
}

}  // namespace
}  // namespace berth::flow
