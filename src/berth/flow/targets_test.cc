// What is said of a flow on the command line.
#include <gtest/gtest.h>

#include "berth/testing/flow.h"

namespace berth::flow {
namespace {

constexpr std::string_view kSamples = R"(
params: {samples: [A, B], depth: 10}
steps:
  map: {run: 'x {s} {depth}', foreach: {s: '{samples}'}, out: {b: 'm/{key}'}}
  sort: {run: x, foreach: {b: map.b}, out: {b: 's/{key}'}, params: {mem: 1}}
  other: {run: x, out: {d: d/}}
  parts: {run: x, foreach: {p: other.d/*}, out: {o: 'p/{key}'}}
  report: {run: x, in: {b: sort.b, o: other.d}}
)";

Result<Graph> build_with(const FlowOptions& options) {
  BERTH_ASSIGN(auto flow, read_flow(kSamples, "f.yaml", options));
  return Graph::build(std::move(flow), FakeWorld{}.world());
}

/// The tasks that run, in their order; all others are as if there were none.
Words ran(const FlowOptions& options) {
  auto graph = build_with(options);
  EXPECT_TRUE(graph) << graph.error().message;
  Words names;
  for (;;) {
    const auto ready = *graph->take_ready();
    EXPECT_TRUE(ready.skipped.empty());
    if (ready.run.empty()) break;
    for (const auto task : ready.run) {
      EXPECT_TRUE(graph->wanted(task));
      names.push_back(graph->name(task));
      EXPECT_TRUE(finish(*graph, names.back()));
    }
  }
  EXPECT_TRUE(graph->done());
  std::ranges::sort(names);
  return names;
}

std::string wrong(const FlowOptions& options) {
  const auto graph = build_with(options);
  return graph ? "nothing" : graph.error().message;
}

TEST(Targets, OnlyTheyAndWhatTheyNeedRun) {
  EXPECT_EQ(ran({}).size(), 8U);
  EXPECT_EQ(ran({.targets = {"sort/B"}}), (Words{"map/B", "sort/B"}));
  EXPECT_EQ(ran({.targets = {"map"}}), (Words{"map/A", "map/B"}));
  EXPECT_EQ(ran({.targets = {"report"}}),
            (Words{"map/A", "map/B", "other", "report", "sort/A", "sort/B"}));
  EXPECT_EQ(ran({.targets = {"map/A", "other"}}), (Words{"map/A", "other"}));
  EXPECT_EQ(ran({.targets = {"parts/b"}}), (Words{"other", "parts/b"}))
      << "which is known when other is done";
}

/// Alone: what runs, then what is taken as it lies, of which what is read ends in '!'.
std::pair<Words, Words> ran_alone(const Words& targets) {
  auto graph = build_with({.targets = targets, .only = true});
  EXPECT_TRUE(graph) << graph.error().message;
  Words run, taken;
  for (;;) {
    const auto ready = *graph->take_ready();
    if (ready.run.empty() && ready.taken.empty()) break;
    for (const auto task : ready.run) run.push_back(graph->name(task));
    for (const auto task : ready.taken) {
      EXPECT_FALSE(graph->wanted(task));
      taken.push_back(graph->name(task) + (graph->is_read(task) ? "!" : ""));
      EXPECT_TRUE(finish(*graph, graph->name(task)));
    }
    for (const auto task : ready.run) EXPECT_TRUE(finish(*graph, graph->name(task)));
  }
  EXPECT_TRUE(graph->done());
  std::ranges::sort(run);
  std::ranges::sort(taken);
  return {run, taken};
}

TEST(Targets, AloneTheyTakeWhatTheyRead) {
  using Both = std::pair<Words, Words>;
  EXPECT_EQ(ran_alone({"map"}), (Both{{"map/A", "map/B"}, {}}));
  EXPECT_EQ(ran_alone({"sort/B"}), (Both{{"sort/B"}, {"map/B!"}}));
  EXPECT_EQ(ran_alone({"report"}),
            (Both{{"report"}, {"map/A", "map/B", "other!", "sort/A!", "sort/B!"}}))
      << "what is further up need not be there any more";
  EXPECT_EQ(ran_alone({"parts/b"}), (Both{{"parts/b"}, {"other!"}}));
  EXPECT_EQ(ran_alone({"map/A", "sort"}), (Both{{"map/A", "sort/A", "sort/B"}, {"map/B!"}}));
}

TEST(Targets, ThatThereAreNot) {
  EXPECT_EQ(wrong({.targets = {"sort/C"}}),
            "the target sort/C: there is no such task; there are sort/A, sort/B");
  EXPECT_EQ(wrong({.targets = {"srot"}}),
            "the target srot: the flow has no step 'srot'; did you mean 'sort'?");
  EXPECT_EQ(wrong({.targets = {"report/x"}}),
            "the target report/x: the step report is one task, and has no others");
  EXPECT_EQ(wrong({.force = {"mep"}}), "--force: the flow has no step 'mep'; did you mean 'map'?");
}

TEST(Targets, ParametersAreSet) {
  auto graph = build_with({.set = {{"samples", {"C"}}, {"depth", {"7"}}, {"sort.mem", {"2"}}}});
  ASSERT_TRUE(graph);
  EXPECT_EQ(names(*graph, graph->take_ready()->run), (Words{"map/C", "other"}));
  EXPECT_EQ(spec(*graph, "map/C").command, (Words{"x", "C", "7"}));
  EXPECT_EQ(wrong({.set = {{"dept", {"7"}}}}),
            "--set: the flow has no parameter 'dept'; did you mean 'depth'?");
  EXPECT_EQ(wrong({.set = {{"sort.men", {"7"}}}}),
            "--set: the flow has no parameter 'sort.men'; did you mean 'sort.mem'?");
  EXPECT_EQ(wrong({.set = {{"sorted.mem", {"7"}}}}),
            "--set: the flow has no step 'sorted'; did you mean 'sort'?");
}

}  // namespace
}  // namespace berth::flow
