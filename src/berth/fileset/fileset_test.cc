#include "berth/fileset/fileset.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/fileset/paths.h"

namespace berth::fileset {
namespace {

using Kind = Entry::Kind;
using Texts = std::vector<std::string>;

Entry file(std::string path, std::string_view content = "x") {
  return {
      std::move(path), Kind::file, sha256(content), static_cast<std::int64_t>(content.size()), {}};
}
Entry link(std::string path, std::string target) {
  return {std::move(path), Kind::link, {}, 0, std::move(target)};
}
Entry directory(std::string path) {
  return {std::move(path), Kind::directory, {}, 0, {}};
}

TEST(Fileset, TextIsWhatItSays) {
  Entry tool = file("bin/a tool");
  tool.kind = Kind::executable;
  const Fileset fileset{{tool, directory("empty"), link("l\tk", "bin/a tool"), file("z\n\\")}};
  const std::string hex = to_hex(sha256("x"));
  const std::string text = "berth fileset 1\nx " + hex + " 1 bin/a tool\nd empty\n" +
                           "l l\\tk\tbin/a tool\nf " + hex + " 1 z\\n\\\\\n";
  EXPECT_EQ(to_text(fileset), text);
  EXPECT_EQ(*parse_fileset(text), fileset);
  EXPECT_EQ(digest(fileset), sha256(text));
  EXPECT_EQ(total_bytes(fileset), 2);
}

std::string refusal(std::string_view lines) {
  const auto fileset = parse_fileset("berth fileset 1\n" + std::string(lines));
  return fileset ? "taken" : fileset.error().message;
}

TEST(Fileset, RefusesTextThatIsNone) {
  const std::string hex = to_hex(sha256("x"));
  EXPECT_EQ(parse_fileset("berth fileset 2\nd a\n").error().message,
            "fileset, line 1: not a whole fileset");
  EXPECT_EQ(refusal(""), "fileset, line 1: no entries");
  EXPECT_EQ(refusal("d a"), "fileset, line 1: not a whole fileset");
  for (const std::string line :
       {"", "d", "q a", "d /a", "d a/", "d a//b", "d ../a", "d a/../b", "d ./a", "d a\tb", "d a\\b",
        "d a\\", "f a", "l a", "l a\t", "l755 a\tb", "d8 a", "d0755 a"})
    EXPECT_EQ(refusal("d 0\n" + line + "\n"), "fileset, line 3: not an entry") << line;
  for (const std::string size : {"", "-1", "+1", "01", "9223372036854775808", "1x"})
    EXPECT_EQ(refusal("f " + hex + " " + size + " a\n").substr(0, 16), "fileset, line 2:") << size;
  EXPECT_EQ(refusal("d b\nd a\n"), "fileset, line 3: out of order");
  EXPECT_EQ(refusal("d a\nd a\n"), "fileset, line 3: out of order");
  EXPECT_EQ(refusal("d .\nd a\n"), "fileset, line 2: another entry lies within it");
  EXPECT_EQ(refusal("d a\nd a.b\nd a/c\n"), "fileset, line 2: another entry lies within it");
  EXPECT_EQ(refusal("f " + hex + " 9223372036854775807 a\nf " + hex + " 1 b\n"),
            "fileset, line 3: too large");
  EXPECT_EQ(refusal("d a\nd b\n"), "taken");
}

TEST(Fileset, LinksThatLeadOutsideAreKeptAsTheyAre) {
  for (const std::string target : {"/b", "../../c", "c/../../../d"}) {
    const Fileset fileset{{link("a/l", target)}};
    EXPECT_EQ(parse_fileset(to_text(fileset)), fileset) << target;
    EXPECT_EQ(part(fileset, "a"), Fileset{{link("l", target)}}) << target;
  }
}

TEST(Fileset, ModesAreWrittenButDoNotCount) {
  Fileset fileset{{file("a/secret"), file("b")}, {{".", 0750}, {"a", 0700}}};
  const Digest before = digest(Fileset{fileset.entries});
  fileset.entries[0].mode = 0600;
  const std::string text = to_text(fileset);
  const auto parsed = parse_fileset(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(to_text(*parsed), text);
  EXPECT_EQ(parsed->entries[0].mode, 0600U);
  EXPECT_EQ(parsed->entries[1].mode, kAnyMode) << "written by an older Berth";
  EXPECT_EQ(parsed->folders[0].mode, 0750U);
  EXPECT_EQ(parsed->folders[1].path, "a");
  EXPECT_EQ(digest(*parsed), before) << "a mode does not make a task run again";
  EXPECT_EQ(*parsed, Fileset{fileset.entries});
  EXPECT_EQ(part(*parsed, "a")->folders[0].mode, 0700U);
  EXPECT_EQ(part(*parsed, "a/secret")->entries[0].mode, 0600U);
  EXPECT_EQ(refusal("d a\nD700 x\nD700 b\n"), "fileset, line 4: out of order");
  EXPECT_EQ(refusal("d a\nD700 ../x\n"), "fileset, line 3: not a folder");
  EXPECT_EQ(refusal("d a\nD700 a\nd b\n"), "fileset, line 4: not a folder");
}

TEST(Fileset, LinksThatLeaveAreTold) {
  EXPECT_TRUE(safe_target("a", "b"));
  EXPECT_TRUE(safe_target("a", "./b//c/"));
  EXPECT_TRUE(safe_target("d/e/a", "../../b"));
  EXPECT_FALSE(safe_target("d/a", "../../b"));
  EXPECT_FALSE(safe_target("a", ".."));
  EXPECT_FALSE(safe_target("d/a", "x/../y")) << "x may be a link to a place further up";
  EXPECT_FALSE(safe_target("a", "/etc/passwd"));
  EXPECT_FALSE(safe_target("a", ""));
}

TEST(Fileset, PartIsAFilesetOfItsOwn) {
  const Fileset whole{{file("a.txt"), file("a/1", "one"), file("a/b/2", "two"), file("b", "three"),
                       link("c/l", "m"), link("d/up", "../b")}};
  EXPECT_EQ(part(whole, "."), whole);
  EXPECT_EQ(part(whole, "a"), (Fileset{{file("1", "one"), file("b/2", "two")}}));
  EXPECT_EQ(part(whole, "b"), Fileset{{file(".", "three")}});
  EXPECT_EQ(part(whole, "a/b"), Fileset{{file("2", "two")}});
  EXPECT_EQ(part(whole, "c"), Fileset{{link("l", "m")}});
  EXPECT_EQ(part(whole, "d").error().message, "d/up: a link that leads out of d");
  EXPECT_EQ(part(whole, "c/l").error().kind, ErrorKind::invalid);
  EXPECT_EQ(part(whole, "a/c").error().kind, ErrorKind::not_found);
  EXPECT_EQ(paths(whole),
            (Texts{"a", "a.txt", "a/1", "a/b", "a/b/2", "b", "c", "c/l", "d", "d/up"}));
  EXPECT_EQ(paths({{file(".")}}), Texts{});
}

TEST(Glob, MatchesAsTheShellDoes) {
  for (const auto& [pattern, path] :
       std::vector<std::pair<std::string, std::string>>{{"*", "a"},
                                                        {"a*c", "abbc"},
                                                        {"*.txt", "x.txt"},
                                                        {"p/?", "p/x"},
                                                        {"[a-c]", "b"},
                                                        {"[!a-c]", "d"},
                                                        {"[]]", "]"},
                                                        {"[", "["},
                                                        {".*", ".x"},
                                                        {"**", "a/b"},
                                                        {"a/**/b", "a/b"},
                                                        {"a/**/b", "a/x/y/b"},
                                                        {"**/*.c", "x.c"},
                                                        {"**/b/**", "a/b/c/d"},
                                                        {"*a*b", "xaybzb"},
                                                        {"[*]", "*"},
                                                        {"a[0-9][0-9]", "a42"}})
    EXPECT_TRUE(matches(pattern, path)) << pattern << ' ' << path;
  for (const auto& [pattern, path] :
       std::vector<std::pair<std::string, std::string>>{{"*", ".a"},
                                                        {"*", "a/b"},
                                                        {"?", ""},
                                                        {"?", "ab"},
                                                        {"[a-c]", "d"},
                                                        {"[!a]", "a"},
                                                        {"**", ".git"},
                                                        {"**/x", ".git/x"},
                                                        {"a/**", "a"},
                                                        {"a", "A"},
                                                        {"*.txt", "x.txt2"},
                                                        {"[*]", "x"},
                                                        {"a*", "b"}})
    EXPECT_FALSE(matches(pattern, path)) << pattern << ' ' << path;
}

/// The same question by trying everything.
bool slow_match(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return slow_match(pattern.substr(1), name) ||
           (!name.empty() && slow_match(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         slow_match(pattern.substr(1), name.substr(1));
}

TEST(Glob, AgreesWithTryingEverything) {
  Rng rng(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string pattern(rng.below(7), ' '), name(rng.below(9), ' ');
    for (char& c : pattern) c = "ab*?"[rng.below(4)];
    for (char& c : name) c = "ab"[rng.below(2)];
    if (name.empty() || pattern.empty()) continue;
    ASSERT_EQ(matches(pattern, name), slow_match(pattern, name)) << pattern << ' ' << name;
    EXPECT_TRUE(matches(literal_pattern(name + "*[?"), name + "*[?"));
  }
}

TEST(Glob, StarsCostNoMoreThanTheyMust) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", std::string(4000, 'a')));
  pattern.clear();
  for (int i = 0; i < 500; ++i) pattern += "**/a/";
  std::string path;
  for (int i = 0; i < 2000; ++i) path += "a/";
  EXPECT_FALSE(matches(pattern + "b", path + "c"));
}

}  // namespace
}  // namespace berth::fileset
