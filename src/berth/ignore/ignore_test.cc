// tests/send_test.py compares all of this with git itself, by chance; here stands what each rule
// is.
#include "berth/ignore/ignore.h"

#include <gtest/gtest.h>

namespace berth::ignore {
namespace {

/// Whether one line of the root's file leaves a file out.
bool leaves_out(std::string_view line, std::string_view path, bool is_directory = false) {
  Rules rules;
  rules.add("", Source::gitignore, line);
  return rules.leaves_out(path, is_directory).has_value();
}

TEST(Ignore, ANameIsMeantAtAnyDepthAndAPathFromItsFile) {
  EXPECT_TRUE(leaves_out("x.o", "x.o") && leaves_out("x.o", "a/b/x.o"));
  EXPECT_TRUE(leaves_out("/x.o", "x.o") && !leaves_out("/x.o", "a/x.o"));
  EXPECT_TRUE(leaves_out("a/x", "a/x") && !leaves_out("a/x", "b/a/x"));
  EXPECT_TRUE(leaves_out("a/*.o", "a/x.o") && !leaves_out("a/*.o", "a/b/x.o"));
}

TEST(Ignore, ASlashAtTheEndMeansDirectories) {
  EXPECT_TRUE(leaves_out("data/", "data", true) && leaves_out("data/", "a/data", true));
  EXPECT_FALSE(leaves_out("data/", "data"));
}

TEST(Ignore, TwoStarsAreAnyDirectoriesOrNone) {
  for (const auto* path : {"a/b", "a/x/b", "a/x/y/b"}) EXPECT_TRUE(leaves_out("a/**/b", path));
  EXPECT_FALSE(leaves_out("a/**/b", "a/xb"));
  EXPECT_TRUE(leaves_out("**/b", "b") && leaves_out("**/b", "a/c/b"));
  EXPECT_TRUE(leaves_out("a/**", "a/b/c") && !leaves_out("a/**", "a", true));
  EXPECT_FALSE(leaves_out("/x**y", "xa/by"));
}

TEST(Ignore, ABackslashTakesASignAsItIs) {
  EXPECT_TRUE(leaves_out("\\#x", "#x") && leaves_out("\\!x", "!x") && !leaves_out("#x", "#x"));
  EXPECT_TRUE(leaves_out("a\\*", "a*") && !leaves_out("a\\*", "ab"));
  EXPECT_TRUE(leaves_out("x\\ ", "x ") && leaves_out("x  ", "x") && !leaves_out("x ", "x "));
  EXPECT_FALSE(leaves_out("x\\", "x\\"));
}

TEST(Ignore, BracketsHoldSignsRangesAndClasses) {
  EXPECT_TRUE(leaves_out("[a-c]", "b") && !leaves_out("[!a-c]", "b") && leaves_out("[^a-c]", "d"));
  EXPECT_TRUE(leaves_out("[]a]", "]") && leaves_out("[a-]", "-") && leaves_out("[\\]]", "]"));
  EXPECT_TRUE(leaves_out("[[:digit:]x]", "7") && leaves_out("[[:digit:]x]", "x"));
  EXPECT_FALSE(leaves_out("[[:nope:]]", "n") || leaves_out("[ab", "[ab") ||
               leaves_out("a[!b]c/d", "a/c/d"));
}

TEST(Ignore, TheLastLineOfTheNearestFileDecides) {
  Rules rules;
  rules.add("", Source::gitignore, "*.o\n!keep.o\n\xef\xbb\xbf");
  rules.add("sub", Source::gitignore, "keep.o\r\n!x.o\r\n");
  EXPECT_EQ(rules.leaves_out("a.o", false), ".gitignore:1");
  EXPECT_EQ(rules.leaves_out("keep.o", false), std::nullopt);
  EXPECT_EQ(rules.leaves_out("sub/keep.o", false), "sub/.gitignore:1");
  EXPECT_EQ(rules.leaves_out("sub/x.o", false), std::nullopt);
  EXPECT_EQ(rules.leaves_out("sub/a.o", false), ".gitignore:1");
}

TEST(Ignore, BerthignoreHasTheLastWordFromWhereverItStands) {
  Rules rules;
  rules.add("", Source::berthignore, "!/sub/data/\n*.log\n");
  rules.add("sub", Source::gitignore, "data/\n!x.log\n");
  EXPECT_EQ(rules.leaves_out("sub/data", true), std::nullopt);
  EXPECT_EQ(rules.leaves_out("sub/x.log", false), ".berthignore:2");
}

TEST(Ignore, ALineBringsBackAPathOfAnyName) {
  for (const auto* path : {"data", "a b/c*", "x\\y", "[z] "}) {
    Rules rules;
    rules.add("", Source::gitignore, "*\n");
    EXPECT_TRUE(rules.leaves_out(path, false));
    rules.add("", Source::berthignore, line_bringing_back(path));
    EXPECT_FALSE(rules.leaves_out(path, false)) << path;
  }
}

TEST(Ignore, ManyStarsTakeNoTimeWithoutEnd) {
  std::string pattern, path;
  for (int i = 0; i < 200; ++i) pattern += "*a**/";
  for (int i = 0; i < 2000; ++i) path += "aa/";
  EXPECT_FALSE(leaves_out(pattern + "b", path + "c"));
}

}  // namespace
}  // namespace berth::ignore
