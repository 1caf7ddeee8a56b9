#include "berth/flow/depfile.h"

#include <gtest/gtest.h>

#include "berth/testing/flow.h"

namespace berth::flow {
namespace {

Words prerequisites(std::string_view text) {
  const auto found = read_depfile(text);
  EXPECT_TRUE(found) << found.error().message;
  return found.value_or(Words{});
}

std::string fault_of_depfile(std::string_view text) {
  const auto found = read_depfile(text);
  return found ? "" : found.error().message;
}

TEST(Depfile, AsCompilersWriteIt) {
  EXPECT_EQ(prerequisites("build/a.o: src/a.c src/a.h \\\n include/b.h\n"),
            (Words{"include/b.h", "src/a.c", "src/a.h"}));
  EXPECT_EQ(prerequisites("a.o: a.c a.h\n\na.h:\n"), (Words{"a.c", "a.h"})) << "-MP";
  EXPECT_EQ(prerequisites("a.o a.d: a.c\n"), (Words{"a.c"}));
  EXPECT_EQ(prerequisites("a.o : a.c"), (Words{"a.c"}));
  EXPECT_EQ(prerequisites("a.o: \\\r\n a.c \\\r\n b.c\r\n"), (Words{"a.c", "b.c"}));
  EXPECT_EQ(prerequisites("a.o:\\\n a.c\\\n b.c\n"), (Words{"a.c", "b.c"}));
  EXPECT_EQ(prerequisites("a.o: a.c\nb.o: a.c b.c\n"), (Words{"a.c", "b.c"}));
  EXPECT_EQ(prerequisites("# made by hand\na.o: a.c # so\n"), (Words{"a.c"}));
  EXPECT_EQ(prerequisites("a.o:\n"), Words{});
}

TEST(Depfile, EscapesOfMake) {
  EXPECT_EQ(prerequisites(R"(a.o: b\ c.h $$x.h \#d.h e\:f.h)"),
            (Words{"#d.h", "$x.h", "b c.h", "e:f.h"}));
  EXPECT_EQ(prerequisites(R"(a.o: a\\\ b c\\ d e\f)"), (Words{R"(a\ b)", R"(c\)", "d", R"(e\f)"}));
  EXPECT_EQ(prerequisites("a.o: std:vector x:y.h"), (Words{"std:vector", "x:y.h"}));
}

TEST(Depfile, WhatIsNone) {
  EXPECT_EQ(fault_of_depfile(""), "there is no rule in it");
  EXPECT_EQ(fault_of_depfile("\n# nothing\n"), "there is no rule in it");
  EXPECT_EQ(fault_of_depfile("a.o: a.c\n\nhello world\n"),
            "line 3: expected 'TARGET: FILE…' as compilers write it, got no ':'");
  EXPECT_EQ(fault_of_depfile(std::string_view("a.o: a\0c", 8)), "there is a NUL byte in it");
}

TEST(Depfile, PlacesAreThoseBesideTheFlow) {
  const auto place = [](std::string_view path) {
    return place_of_dependency(path, "/state/tasks/1-1", "/home/me/p");
  };
  EXPECT_EQ(place("src/a.h"), "src/a.h");
  EXPECT_EQ(place("./src/../include//a.h"), "include/a.h");
  EXPECT_EQ(place("/state/tasks/1-1/src/a.h"), "src/a.h");
  EXPECT_EQ(place("/home/me/p/src/a.h"), "src/a.h");
  EXPECT_EQ(place("/usr/include/stdio.h"), "/usr/include/stdio.h");
}

TEST(Depfile, WhatWasFoundComesBehindWhatIsDeclared) {
  TaskSpec spec{.name = "a", .command = {"cc"}};
  const std::string declared = record(spec, {});
  const std::string old = record_with(declared, std::vector<Found>{{"a b.h", sha256("1")}});
  const std::string now =
      record_with(old, std::vector<Found>{{"a b.h", sha256("2")}, {"n.h", sha256("")}});
  const auto differ = changes(old, now).value();
  ASSERT_EQ(differ.size(), 2U);
  EXPECT_EQ(to_string(differ[0]), "a b.h changed");
  EXPECT_EQ(to_string(differ[1]), "n.h is new");
  EXPECT_EQ(record_with(now, {}), declared);
}

TEST(Depfile, TheStepSaysWhereItIs) {
  Graph graph = build(
      "steps:\n  c:\n    foreach: {s: [x, y]}\n    run: cc\n    out: {o: 'b/{s}.o'}\n"
      "    depfile: '{out.o}.d'\n");
  const auto ready = graph.take_ready().value().run;
  EXPECT_EQ(graph.spec(ready.at(1)).value().depfile, "b/y.o.d");
  const auto wrong = read_flow("steps: {c: {run: cc, depfile: a.d}}", "f.yaml");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("steps.c.depfile: a step without outputs"),
            std::string::npos);
}

}  // namespace
}  // namespace berth::flow
