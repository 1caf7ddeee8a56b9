// Which task of a flow is looked at next.
#include "berth/run/flows/ready_tasks.h"

#include <gtest/gtest.h>

namespace berth::run {
namespace {

std::vector<flow::Step> steps_of(const std::vector<std::int64_t>& priorities) {
  std::vector<flow::Step> steps(priorities.size());
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].priority = priorities[i];
  return steps;
}

std::vector<std::int64_t> all_of_them(ReadyTasks& ready) {
  std::vector<std::int64_t> order;
  while (const auto task = ready.take()) order.push_back(task->value);
  EXPECT_FALSE(ready.has_next());
  return order;
}

TEST(ReadyTasks, ArePriorityFirstThenOrderAndWhatWasBegunBeforeAll) {
  ReadyTasks ready(steps_of({0, 5, 0}));
  ready.add(2, {20});
  ready.add(0, {1});
  ready.add(0, {2});
  ready.add(1, {10});
  ready.add_begun({21});
  EXPECT_EQ(all_of_them(ready), (std::vector<std::int64_t>{21, 10, 1, 2, 20}));
}

TEST(ReadyTasks, OneThatWasPutBackIsTheNextOfItsStep) {
  ReadyTasks ready(steps_of({0}));
  for (const std::int64_t task : {1, 2}) ready.add(0, {task});
  ready.put_back(0, *ready.take());
  EXPECT_EQ(all_of_them(ready), (std::vector<std::int64_t>{1, 2}));
}

TEST(ReadyTasks, WithoutRoomAStepWaitsAndOthersGoOn) {
  ReadyTasks ready(steps_of({1, 0}));
  ready.add(0, {1});
  ready.add(1, {2});
  for (std::int64_t i = 0; i < ReadyTasks::kMostRoomsOfStep; ++i) ready.take_room(0);
  EXPECT_EQ(all_of_them(ready), std::vector<std::int64_t>{2});
  ready.add_begun({3});
  EXPECT_EQ(all_of_them(ready), std::vector<std::int64_t>{3}) << "what was begun needs none";
  ready.free_room(0);
  EXPECT_EQ(all_of_them(ready), std::vector<std::int64_t>{1});
}

TEST(ReadyTasks, AllTogetherHaveSoManyRooms) {
  const std::size_t full = ReadyTasks::kMostRooms / ReadyTasks::kMostRoomsOfStep;
  ReadyTasks ready(steps_of(std::vector<std::int64_t>(full + 1)));
  ready.add(full, {1});
  for (std::size_t step = 0; step < full; ++step)
    for (std::int64_t i = 0; i < ReadyTasks::kMostRoomsOfStep; ++i) ready.take_room(step);
  EXPECT_FALSE(ready.has_next());
  ready.free_room(0);
  EXPECT_EQ(all_of_them(ready), std::vector<std::int64_t>{1});
}

}  // namespace
}  // namespace berth::run
