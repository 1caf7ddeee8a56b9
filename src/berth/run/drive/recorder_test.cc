// The recorder: what is gathered, when it is durable, and what is shown only then.
#include "berth/run/drive/recorder.h"

#include <gtest/gtest.h>

#include "berth/testing/failing_store.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using std::chrono::milliseconds;

/// A workload of nothing: its tasks are what the test says.
class Plain final : public Workload {
 public:
  const RunOptions& options() const override { return options_; }
  ResourceRequest request(const store::TaskRecord&, std::int64_t) const override { return {}; }
  Result<exec::Launch> launch(const store::TaskRecord&, Token, std::int64_t) override {
    return exec::Launch{};
  }
  Status make_durable() override {
    ++durable;
    return {};
  }
  void committed() override { ++commits; }
  int durable = 0, commits = 0;
  RunOptions options_;
};

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() : failing_(*world_.context.store) {
    const auto record = world_.submit_trials(3);
    auto workload = std::make_unique<Plain>();
    workload_ = workload.get();
    const auto goal = experiment::Goal{.metric = "score", .maximize = true};
    workload_->options_.goal = goal;
    run_.emplace(ActiveRun{.env = world_.env,
                           .observer = world_.observer,
                           .record = record,
                           .workload = std::move(workload),
                           .directory = "/run"});
    run_->record = *failing_.take_over(record.id, 1, 1, world_.env.wall(), {});
    run_->tasks = *failing_.tasks(record.id);
    recorder_.emplace(*run_, failing_, *LogWriter::open(world_.env, "/run"), [this] {
      ends_when_durable_ = world_.observer.ends.size();
      ++acknowledged_;
    });
    recorder_->begin();
  }
  Token start(std::int64_t task) {
    const Token token{(run_->record.epoch << 32) + task};
    recorder_->add(store::AttemptStarted{{task}, token, world_.env.wall(), "{}", "here"});
    recorder_->count({task}, store::TaskState::running);
    return token;
  }
  void end(std::int64_t task, Token token) {
    recorder_->add_end({.task = {task}, .token = token, .exit_code = 0, .detail = {}}, 0,
                       store::TaskState::done);
  }
  store::Counts recorded() { return world_.context.store->find_run(run_->record.name)->counts; }

  testing::World world_;
  store::FailingStore failing_;
  Plain* workload_ = nullptr;
  std::optional<ActiveRun> run_;
  std::optional<Recorder> recorder_;
  std::size_t ends_when_durable_ = 0;
  int acknowledged_ = 0;
};

TEST_F(RecorderTest, AnEndIsShownOnlyAfterTheCommitThatHoldsIt) {
  const Token token = start(1);
  end(1, token);
  EXPECT_TRUE(world_.observer.ends.empty());
  EXPECT_EQ(recorded().done, 0);
  EXPECT_EQ(recorder_->progress().counts.done, 1) << "counted at once";
  ASSERT_TRUE(recorder_->commit());
  EXPECT_EQ(ends_when_durable_, 0U) << "workers are told first";
  ASSERT_EQ(world_.observer.ends.size(), 1U);
  EXPECT_EQ(world_.observer.ends[0].label, "1");
  EXPECT_EQ(recorded().done, 1);
  EXPECT_EQ(workload_->durable, 1);
}

TEST_F(RecorderTest, ACommitThatFailsKeepsWhatWasGatheredAndShowsNothing) {
  const Token token = start(1);
  end(1, token);
  failing_.arm({.call = 1});
  EXPECT_FALSE(recorder_->commit());
  EXPECT_TRUE(world_.observer.ends.empty());
  EXPECT_EQ(acknowledged_, 0);
  ASSERT_TRUE(recorder_->commit());
  EXPECT_EQ(recorded().done, 1);
  EXPECT_EQ(world_.observer.ends.size(), 1U);
}

TEST_F(RecorderTest, ChangesWaitForOthersAndThenTheyAreDue) {
  EXPECT_FALSE(recorder_->commit_at());
  const Token token = start(1);
  ASSERT_TRUE(
      recorder_->commit());  // the first does not wait: nobody knows how long a commit takes
  EXPECT_FALSE(recorder_->due());
  end(1, token);
  EXPECT_EQ(recorder_->commit_at(), world_.env.now() + milliseconds(20));
  EXPECT_FALSE(recorder_->due());
  world_.env.freeze(milliseconds(20));
  EXPECT_TRUE(recorder_->due());
  ASSERT_TRUE(recorder_->commit());
  EXPECT_FALSE(recorder_->due());
}

TEST_F(RecorderTest, ACommitOfNothingAsksTheStoreForNothing) {
  recorder_->commit_soon();
  EXPECT_TRUE(recorder_->due());
  const auto calls = failing_.calls();
  ASSERT_TRUE(recorder_->commit());
  EXPECT_EQ(failing_.calls(), calls);
  EXPECT_EQ(acknowledged_, 1) << "what needed no record is acknowledged";
}

TEST_F(RecorderTest, TheBestScoreIsThatOfWhatIsDurable) {
  const Token token = start(2);
  recorder_->add_metric({{2}, token, "score", 0.5});
  recorder_->add_metric({{2}, token, "score", 0.75});
  end(2, token);
  EXPECT_TRUE(recorder_->progress().leaders.empty());
  ASSERT_TRUE(recorder_->commit());
  ASSERT_FALSE(recorder_->progress().leaders.empty());
  EXPECT_EQ(recorder_->progress().leaders[0].label, "2");
  EXPECT_EQ(recorder_->progress().leaders[0].score, 0.75);
  EXPECT_EQ(recorder_->result_json(std::nullopt),
            R"({"done":1,"cached":0,"skipped":0,"failed":0,"best":{"task":"2","value":0.75}})");
}

TEST_F(RecorderTest, OfEqualScoresTheLowerNumberIsTheBestWhicheverEndedFirst) {
  std::vector<Token> tokens;
  for (const std::int64_t task : {1, 2, 3}) tokens.push_back(start(task));
  for (const std::int64_t task : {3, 1, 2}) {
    const Token token = tokens[static_cast<std::size_t>(task - 1)];
    recorder_->add_metric({{task}, token, "score", 0.5});
    end(task, token);
    ASSERT_TRUE(recorder_->commit());
  }
  EXPECT_EQ(recorder_->progress().leaders.at(0).label, "1");
  EXPECT_EQ(recorder_->progress().leaders.at(1).label, "2");
}

TEST_F(RecorderTest, NewTasksAreNumberedOnAndCounted) {
  recorder_->add_tasks({{.label = "4", .params = {}}});
  EXPECT_EQ(run_->tasks.size(), 4U);
  EXPECT_EQ(run_->tasks.back().number.value, 4);
  EXPECT_EQ(recorder_->progress().total, 4);
  ASSERT_TRUE(recorder_->commit());
  EXPECT_EQ(recorded().waiting, 4);
}

TEST_F(RecorderTest, WhatIsNotDurableIsNoProgress) {
  const Token token = start(1);
  end(1, token);
  failing_.arm({.times = 1, .error = {ErrorKind::full, "no space left"}});
  ASSERT_FALSE(recorder_->commit());
  EXPECT_FALSE(recorder_->has_progressed());
  ASSERT_TRUE(recorder_->commit());
  EXPECT_TRUE(recorder_->has_progressed());
}

}  // namespace
}  // namespace berth::run
