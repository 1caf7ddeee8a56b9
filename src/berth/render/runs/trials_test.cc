#include "berth/render/runs/trials.h"
#include "berth/engine/queries/trials.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace berth::render {
namespace {

/// Trials whose metrics are these pairs: a to be great, b to be small.
struct Trials {
  explicit Trials(const std::vector<std::pair<double, double>>& pairs) {
    program.goal = {.metric = "a"};
    program.further_goals = {{.metric = "b", .maximize = false}};
    for (const auto& [a, b] : pairs) {
      auto& task = tasks.emplace_back();
      task.number = {static_cast<std::int64_t>(tasks.size())};
      task.label = fmt::format("{}", tasks.size());
      task.state = store::TaskState::done;
      task.attempts = 1;
      task.metrics = {{"a", a}, {"b", b}};
    }
  }
  std::vector<store::TaskRecord> tasks;
  experiment::Program program;
};

std::string labels(const engine::Order& order) {
  std::string text;
  for (const auto* task : order) text += task->label;
  return text;
}

TEST(Front, IsWhatNoOtherBeats) {
  Trials trials({{1, 1}, {2, 2}, {3, 3}, {2, 3}, {0, 1}, {3, 3}});
  EXPECT_EQ(labels(engine::front_of(engine::in_turn(trials.tasks), trials.program)), "1236")
      << "equal ones both";
  EXPECT_EQ(labels(engine::sorted_trials(trials.tasks, trials.program)), "362145");
  trials.tasks[0].state = store::TaskState::failed;
  trials.tasks[1].metrics.pop_back();
  EXPECT_EQ(labels(engine::front_of(engine::in_turn(trials.tasks), trials.program)), "356");
  trials.program.further_goals.clear();
  EXPECT_TRUE(engine::front_of(engine::in_turn(trials.tasks), trials.program).empty());
}

TEST(Front, IsThatOfBruteForce) {
  std::vector<std::pair<double, double>> pairs;
  for (int i = 0; i < 200; ++i) pairs.emplace_back(i * 7919 % 31, i * 104729 % 37);
  const Trials trials(pairs);
  std::string expected;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [a, b] = pairs[i];
    const bool beaten = std::ranges::any_of(pairs, [&](const auto& other) {
      return other.first >= a && other.second <= b && other != pairs[i];
    });
    if (!beaten) expected += fmt::format("{}", i + 1);
  }
  EXPECT_EQ(labels(engine::front_of(engine::in_turn(trials.tasks), trials.program)), expected);
}

TEST(Front, IsMarkedInTheTable) {
  const Trials trials({{1, 1}, {2, 2}, {1, 2}});
  const auto text =
      to_text(trials_table(engine::sorted_trials(trials.tasks, trials.program), trials.program, 0));
  EXPECT_EQ(text,
            "task  a  b  front  time  state\n"
            "   2  2  2  *         -  done\n"
            "   1  1  1  *         -  done\n"
            "   3  1  2            -  done\n");
}

}  // namespace
}  // namespace berth::render
