#include "berth/run/state/task_times.h"

#include <gtest/gtest.h>

#include "berth/experiment/program.h"

namespace berth::run {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class TaskTimesTest : public ::testing::Test {
 protected:
  TaskTimesTest() { context.store = store::memory_store(); }

  /// A run whose first tasks are done, each after so many seconds.
  store::RunRecord submit(const std::string& name, const std::string& kind,
                          const std::vector<std::string>& labels, const std::vector<int>& took_s,
                          const std::string& spec = "{}") {
    store::NewRun run{name, kind, spec, "/", 0, Wall{}, {}};
    for (const auto& label : labels) run.tasks.push_back({label, {}});
    const auto made = *context.store->submit(run);
    const auto taken = *context.store->take_over(made.id, 1, 1, Wall{}, {});
    std::int64_t number = 0;
    for (const int took : took_s) {
      ++number;
      const Token token{(taken.epoch << 32) + number};
      store::AttemptEnded ended;
      ended.task = TaskNumber{number};
      ended.token = token;
      ended.at = Wall{} + seconds(took);
      EXPECT_TRUE(context.store->apply(
          made.id, {{store::AttemptStarted{ended.task, token, Wall{}, "", ""}, ended}}));
    }
    return *context.store->find_run(made.name);
  }

  std::optional<TaskTimes::Expected> left(const store::RunRecord& run, std::string_view label,
                                          int elapsed_s) {
    const auto tasks = *context.store->tasks(run.id);
    const auto runs = *context.store->runs();
    return TaskTimes::read(context, run, tasks, runs).left(label, seconds(elapsed_s));
  }

  Context context;
};

TEST_F(TaskTimesTest, ItsOwnEndedTasksTell) {
  const auto run = submit("digits", "experiment", {"1", "2", "3", "4"}, {30, 10, 20});
  const auto fresh = left(run, "4", 0);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->left, seconds(20));
  EXPECT_EQ(fresh->by, "3 ended tasks of digits-1");
  EXPECT_FALSE(fresh->is_limit);
  EXPECT_EQ(left(run, "4", 25)->left, seconds(5));
  EXPECT_FALSE(left(run, "4", 31)) << "it outlasts all of them";
}

TEST_F(TaskTimesTest, WhereNoneHasEndedThoseOfTheRunBeforeOfTheSameNameDo) {
  submit("digits", "experiment", {"1", "2"}, {50});
  submit("other", "experiment", {"1"}, {99});
  const auto run = submit("digits", "experiment", {"1"}, {});
  EXPECT_EQ(left(run, "1", 0)->by, "1 ended task of digits-1");
  EXPECT_EQ(left(run, "1", 20)->left, seconds(30));
  EXPECT_FALSE(left(submit("third", "experiment", {"1"}, {}), "1", 0));
}

TEST_F(TaskTimesTest, StepsOfAFlowAreToldApart) {
  submit("flow", "flow", {"map/A", "sum"}, {5, 500});
  const auto run = submit("flow", "flow", {"map/A", "map/B", "sum"}, {7});
  EXPECT_EQ(left(run, "map/B", 0)->left, seconds(7));
  EXPECT_EQ(left(run, "map/B", 0)->by, "1 ended task of step map of flow-2");
  EXPECT_EQ(left(run, "sum", 0)->left, seconds(500));
  EXPECT_EQ(left(run, "sum", 0)->by, "1 ended task of step sum of flow-1");
  EXPECT_FALSE(left(run, "new", 0));
}

TEST_F(TaskTimesTest, ElseTheTimeLimitIsTheMost) {
  experiment::Program program;
  program.name = "train";
  program.kind = "experiment";
  program.timeout = hours(1);
  const auto run =
      submit("train", "experiment", {"1", "2"}, {10}, experiment::to_json_text(program));
  EXPECT_FALSE(left(run, "2", 5)->is_limit);
  const auto late = left(run, "2", 600);
  ASSERT_TRUE(late);
  EXPECT_TRUE(late->is_limit);
  EXPECT_EQ(late->left, hours(1) - seconds(600));
  EXPECT_EQ(late->by, "the time limit of train-1, 1h00m");
}

}  // namespace
}  // namespace berth::run
