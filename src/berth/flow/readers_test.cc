#include <gtest/gtest.h>

#include "berth/testing/flow.h"

namespace berth::flow {
namespace {

/// Finishes everything that is ready now, each output one file; the tasks' names.
Words finish_ready(Graph& graph) {
  Words names;
  const auto ready = graph.take_ready().value().run;
  for (const auto task : ready) {
    names.push_back(graph.name(task));
    EXPECT_TRUE(graph.finish(
        task, std::vector<fileset::Fileset>(graph.output_paths(task).size(), files({"."}))));
  }
  return names;
}

Words released(Graph& graph) {
  Words names;
  for (const auto task : graph.take_released()) names.push_back(graph.name(task));
  return names;
}

constexpr std::string_view kMap =
    "steps:\n"
    "  map: {foreach: {s: [A, B]}, run: x, out: {o: 'm/{s}'}, temp: true}\n"
    "  each: {foreach: {m: map.o}, run: x, out: {o: 'e/{key}'}}\n";

TEST(Readers, ATaskIsReleasedByThoseOfItsOwn) {
  Graph graph = build(kMap);
  EXPECT_EQ(finish_ready(graph), (Words{"map/A", "map/B"}));
  EXPECT_EQ(released(graph), Words{});
  const auto ready = graph.take_ready().value().run;
  ASSERT_EQ(ready.size(), 2U);
  EXPECT_TRUE(graph.finish(ready[1], {files({"."})}));
  EXPECT_EQ(released(graph), Words{"map/B"});
  EXPECT_EQ(released(graph), Words{}) << "once";
  EXPECT_TRUE(graph.finish(ready[0], {files({"."})}));
  EXPECT_EQ(released(graph), Words{"map/A"});
}

TEST(Readers, AStepThatTakesAllIsWaitedFor) {
  Graph graph = build(std::string(kMap) + "  all: {in: {m: map.o}, run: x}\n" +
                      "  later: {needs: [map], run: x}\n");
  (void)finish_ready(graph);
  const auto ready = graph.take_ready().value().run;
  ASSERT_EQ(ready.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(graph.finish(ready[i], std::vector<fileset::Fileset>(i < 2 ? 1 : 0, files({"."}))));
  EXPECT_EQ(released(graph), Words{});
  EXPECT_TRUE(graph.finish(ready[3], {}));
  EXPECT_EQ(released(graph), (Words{"map/A", "map/B"}));
}

TEST(Readers, AStepThatIsNotUnfoldedYetMayRead) {
  Graph graph = build(
      "steps:\n  one: {run: x, out: {d: d/}, temp: true}\n"
      "  more: {foreach: {f: one.d/*}, run: x, out: {o: 'o/{key}'}}\n");
  const auto ready = graph.take_ready().value().run;
  EXPECT_TRUE(graph.finish(ready.at(0), {files({"a", "b"})}));
  EXPECT_EQ(released(graph), Words{});
  EXPECT_EQ(finish_ready(graph), (Words{"more/a", "more/b"}));
  EXPECT_EQ(released(graph), Words{"one"});
}

TEST(Readers, WhatWasMadeAgainMayDifferButInItsNames) {
  Graph graph = build(
      "steps:\n  one: {run: x, out: {d: d/}, temp: true}\n"
      "  all: {in: {d: one.d}, run: x}\n");
  const auto one = graph.take_ready().value().run.at(0);
  EXPECT_TRUE(graph.finish(one, {files({"a", "b"})}));
  EXPECT_TRUE(graph.replace(one, {files({"a", "b"}, "new")}));
  const auto all = graph.take_ready().value().run.at(0);
  EXPECT_EQ(graph.spec(all).value().inputs.at(0).content, files({"a", "b"}, "new"));
  EXPECT_EQ(graph.spec(all).value().inputs.at(0).producer, one);
  const auto other = graph.replace(one, {files({"a"})});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("contains other files than the ones"), std::string::npos);
}

TEST(Readers, KeysThatDoNotGoTogether) {
  const auto complaint = [](const std::string& step) {
    const auto flow = read_flow("steps:\n  a: {run: x, out: {o: o}, " + step + "}\n", "f.yaml");
    return flow ? "" : flow.error().message;
  };
  EXPECT_EQ(complaint("temp: true"),
            "f.yaml:2: steps.a.temp: no step reads its outputs: they would be removed immediately");
  EXPECT_NE(complaint("temp: true, protect: true").find("steps.a.protect: temporary outputs are"),
            std::string::npos);
  EXPECT_EQ(complaint("protect: true"), "");
  EXPECT_NE(complaint("protect: maybe").find("steps.a.protect"), std::string::npos);
}

}  // namespace
}  // namespace berth::flow
