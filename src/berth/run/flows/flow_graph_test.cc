// The tasks of a flow joined with what was recorded of them.
#include "berth/run/flows/flow_graph.h"

#include "berth/testing/flow.h"

namespace berth::run {
namespace {

constexpr std::string_view kTwo = "name: f\nsteps:\n  a: {run: ls}\n  b: {run: ls, needs: [a]}\n";

store::TaskRecord task_of(std::int64_t number, const std::string& label, store::TaskState state) {
  store::TaskRecord task;
  task.number = {number};
  task.label = label;
  task.state = state;
  return task;
}

TEST(FlowGraph, TasksAreNumberedAsTheyBecomeKnownAndLookedAtWhenReady) {
  FlowGraph graph;
  ASSERT_TRUE(graph.build(flow::read(kTwo), flow::FakeWorld{}.world(), {}));
  Next next;
  ASSERT_TRUE(graph.update(next));
  ASSERT_EQ(next.added.size(), 2U);
  EXPECT_EQ(next.added[0].label, "a");
  EXPECT_EQ(graph.number("b", next), TaskNumber{2});
  const auto first = graph.take();
  EXPECT_EQ(graph.graph().name(*first), "a");
  EXPECT_FALSE(graph.has_next());
  ASSERT_TRUE(graph.graph().finish(*first, {}));
  ASSERT_TRUE(graph.update(next));
  EXPECT_EQ(graph.graph().name(*graph.take()), "b");
  EXPECT_EQ(next.added.size(), 2U) << "neither is added again";
}

TEST(FlowGraph, WhatWasRecordedIsKnownUntilItIsForgotten) {
  const std::vector<store::TaskRecord> tasks{task_of(1, "a", store::TaskState::done),
                                             task_of(2, "b", store::TaskState::waiting),
                                             task_of(3, "gone", store::TaskState::waiting)};
  FlowGraph graph;
  ASSERT_TRUE(graph.build(flow::read(kTwo), flow::FakeWorld{}.world(), tasks));
  Next next;
  ASSERT_TRUE(graph.update(next));
  EXPECT_TRUE(next.added.empty());
  ASSERT_NE(graph.recorded("a"), nullptr);
  EXPECT_EQ(graph.recorded("b"), nullptr) << "it only waited";
  graph.forget("a");
  EXPECT_EQ(graph.recorded("a"), nullptr);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(graph.graph().finish(*graph.take(), {}));
    ASSERT_TRUE(graph.update(next));
  }
  ASSERT_EQ(next.settled.size(), 1U) << "the flow has no such task any more";
  EXPECT_EQ(next.settled[0].task, TaskNumber{3});
  EXPECT_EQ(next.settled[0].to, store::TaskState::skipped);
}

}  // namespace
}  // namespace berth::run
