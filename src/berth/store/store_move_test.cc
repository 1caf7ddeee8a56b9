// The contract of store.h: what moves a run and its tasks without an attempt, and who may.
#include "berth/testing/store_contract.h"

namespace berth::store {
namespace {

using enum TaskState;

class StoreMoveTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Contract, StoreMoveTest, backends(), backend_name);

TEST_P(StoreMoveTest, TasksAreAddedAndKeyedWhileItRuns) {
  const RunId run = submit("flow", 2);
  apply(run, {started(1, 5), ended(1, 5), TasksAdded{{{"count/0", {{"part", "a"}}}, {"sum", {}}}},
              TaskKeyed{{3}, "d1ge57", R"({"in":1})"}, TaskMoved{{3}, TaskState::cached}});
  reopen();
  ASSERT_EQ(store_->tasks(run)->size(), 4U);
  EXPECT_EQ(task(run, 3).label, "count/0");
  EXPECT_EQ(task(run, 3).params, (Values{{"part", "a"}}));
  EXPECT_EQ(task(run, 3).state, TaskState::cached);
  EXPECT_EQ(task(run, 3).digest, "d1ge57");
  EXPECT_EQ(task(run, 3).depends, R"({"in":1})");
  EXPECT_EQ(counts(), "2w 0r 1d 1c 0f 0s");
  EXPECT_EQ(apply(run, {TasksAdded{{{"sum", {}}}}}).error().kind, ErrorKind::exists);
  EXPECT_EQ(apply(run, {TasksAdded{{{"x", {}}, {"x", {}}}}}).error().kind, ErrorKind::exists);
  EXPECT_EQ(apply(run, {TasksAdded{{{"y", {{"a", "1"}, {"a", "2"}}}}}}).error().kind,
            ErrorKind::invalid);
  EXPECT_EQ(apply(run, {TaskKeyed{{9}, "", ""}}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->tasks(run)->size(), 4U) << "a refused batch adds none";
}

TEST_P(StoreMoveTest, AMetricThatBecomesMissingHasNoValueUntilItsNextReport) {
  const RunId run = submit("a");
  apply(run, {started(1, 1), seen(1, 1, "auc", 0.5), seen(1, 1, "acc", 0.9),
              seen(1, 1, "auc", recorded_value(std::nan("")))});
  reopen();
  EXPECT_EQ(task(run, 1).metrics, (Numbers{{"acc", 0.9}}));
  EXPECT_EQ(store_->metrics(run, TaskNumber{1}).value().size(), 2U);
  apply(run, {seen(1, 1, "acc", recorded_value(-HUGE_VAL)), seen(1, 1, "auc", 0.6)});
  EXPECT_EQ(task(run, 1).metrics, (Numbers{{"auc", 0.6}}));
}

TEST_P(StoreMoveTest, AFinalTaskIsReopenedAndItsAttemptsForgiven) {
  const RunId run = submit("a", 5);
  apply(run, {started(1, 5), ended(1, 5, failed), started(2, 6), ended(2, 6), moved(4, cached),
              started(5, 7)});
  apply(run, {TaskReopened{{1}}, TaskReopened{{2}}, TaskReopened{{3}}, TaskReopened{{4}},
              TaskReopened{{5}}});
  reopen();
  EXPECT_EQ(task(run, 1).state, waiting);
  EXPECT_EQ(task(run, 1).forgiven, Token{5});
  EXPECT_EQ(task(run, 1).attempts, 1) << "what was is not forgotten";
  EXPECT_EQ(task(run, 2).state, waiting) << "its outputs are lost, say";
  EXPECT_EQ(task(run, 2).forgiven, Token{6});
  EXPECT_EQ(task(run, 4).state, waiting);
  EXPECT_EQ(task(run, 5).state, running);
  EXPECT_EQ(counts(), "4w 1r 0d 0c 0f 0s");
  EXPECT_EQ(refused(run, {started(1, 8), ended(1, 8)}), 0);
  EXPECT_EQ(apply(run, {TaskReopened{{9}}}).error().kind, ErrorKind::not_found);
}

TEST_P(StoreMoveTest, TakeOverFreesWhatTheLostRunnerHeld) {
  const RunId run = submit("a", 6);
  apply(run, {started(1, 1), started(2, 2), ended(2, 2, done), moved(3, stopped), moved(4, failed),
              moved(5, cached)});
  const auto taken = store_->take_over(run, 4711, 99, at_s(50), {});
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->epoch, 1);
  EXPECT_EQ(taken->runner_pid, 4711);
  EXPECT_EQ(taken->runner_started_at, 99);
  EXPECT_EQ(taken->counts, (Counts{.waiting = 3, .done = 1, .cached = 1, .failed = 1}));
  EXPECT_EQ(text(*taken), text(store_->find_run("a-1")));
  EXPECT_EQ(task(run, 1).state, waiting);
  EXPECT_EQ(task(run, 1).cause, exec::Cause::runner_lost);
  EXPECT_EQ(task(run, 1).ended, at_s(50));
  EXPECT_EQ(task(run, 2).state, done);
  EXPECT_EQ(task(run, 2).ended, at_s(20));
  EXPECT_EQ(task(run, 3).state, waiting);
  EXPECT_EQ(task(run, 4).state, failed);
  EXPECT_EQ(task(run, 5).state, cached);
  const auto attempt = store_->attempts(run, TaskNumber{1}).value().at(0);
  EXPECT_EQ(attempt.cause, exec::Cause::runner_lost);
  EXPECT_EQ(attempt.ended, at_s(50));
}

TEST_P(StoreMoveTest, WhatOutlivedItsRunnerGoesOnUnderItsToken) {
  const RunId run = submit("a", 5);
  apply(run, {started(1, 1), started(2, 2), started(3, 3), ended(3, 3, done), moved(4, stopped)});
  const std::vector<Token> alive{{1}, {3}, {4711}};
  const auto taken = store_->take_over(run, 1, 1, at_s(50), alive);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->counts, (Counts{.waiting = 3, .running = 1, .done = 1}));
  reopen();
  EXPECT_EQ(task(run, 1).state, running);
  EXPECT_EQ(task(run, 1).token, Token{1});
  EXPECT_FALSE(task(run, 1).ended);
  EXPECT_EQ(task(run, 2).cause, exec::Cause::runner_lost);
  EXPECT_EQ(task(run, 3).state, done) << "what has ended is not begun again";
  EXPECT_EQ(refused(run, {seen(1, 1, "loss", 0.5), ended(1, 1, done)}), 0);
  EXPECT_EQ(refused(run, {ended(1, 1, done)}), 1) << "once";
  EXPECT_EQ(refused(run, {ended(2, 2, done)}), 1) << "it was not among those that go on";
  EXPECT_EQ(task(run, 1).metrics, (Numbers{{"loss", 0.5}}));
  EXPECT_EQ(counts(), "3w 0r 2d 0c 0f 0s");
}

TEST_P(StoreMoveTest, WhatOutlivedItsRunnerIsSupersededByALaterAttempt) {
  const RunId run = submit("a", 1);
  apply(run, {started(1, 1)});
  const std::vector<Token> alive{{1}};
  ASSERT_TRUE(store_->take_over(run, 1, 1, at_s(50), alive));
  EXPECT_TRUE(apply(run, {started(1, (1LL << 32) + 1)}));
  EXPECT_EQ(refused(run, {ended(1, 1, done)}), 1);
  EXPECT_EQ(store_->attempts(run, {1}).value().at(0).cause, exec::Cause::superseded);
}

TEST_P(StoreMoveTest, TakeOverLeavesOtherRunsAlone) {
  const RunId first = submit("a");
  const RunId second = submit("a");
  apply(second, {started(1, 1), moved(2, stopped)});
  const std::string before = text(store_->tasks(second));
  ASSERT_TRUE(store_->take_over(first, 1, 1, at_s(50), {}));
  EXPECT_EQ(text(store_->tasks(second)), before);
}

TEST_P(StoreMoveTest, TokensOfAnEarlierEpochAreStale) {
  const RunId run = submit("a");
  store_->take_over(run, 1, 1, at_s(1), {});
  const std::int64_t epoch = 1LL << 32;
  EXPECT_TRUE(apply(run, {started(1, epoch + 1)}));
  EXPECT_EQ(store_->take_over(run, 2, 2, at_s(2), {})->epoch, 2);
  EXPECT_EQ(refused(run, {ended(1, epoch + 1)}), 1) << "a completion after take_over";
  EXPECT_EQ(apply(run, {started(2, epoch + 2)}).error().kind, ErrorKind::stale);
  EXPECT_EQ(apply(run, {started(2, 2 * epoch)}).error().kind, ErrorKind::stale);
  EXPECT_TRUE(apply(run, {started(1, 2 * epoch + 1)}));
  EXPECT_EQ(refused(run, {ended(1, epoch + 1)}), 1);
  EXPECT_EQ(refused(run, {ended(1, 2 * epoch + 1)}), 0);
}

TEST_P(StoreMoveTest, TasksMoveWithoutAnAttempt) {
  const RunId run = submit("a", 4);
  apply(run, {started(1, 1), started(2, 2), ended(2, 2, done)});
  apply(run, {moved(1, stopped), moved(2, waiting), moved(3, stopped), moved(4, failed)});
  EXPECT_EQ(counts(), "0w 1r 1d 0c 1f 1s") << "a running or final task is left as it is";
  apply(run, {moved(3, waiting), moved(3, waiting), moved(4, waiting)});
  EXPECT_EQ(counts(), "1w 1r 1d 0c 1f 0s");
  EXPECT_EQ(refused(run, {ended(1, 1, done)}), 0);
}

TEST_P(StoreMoveTest, ATaskIsDoneWithoutAnAttemptWhenNothingAsksForIt) {
  const RunId run = submit("a", 1);
  apply(run, {moved(1, done)});
  reopen();
  EXPECT_EQ(task(run, 1).state, done);
  EXPECT_EQ(task(run, 1).attempts, 0);
  EXPECT_EQ(apply(run, {moved(1, running)}).error().kind, ErrorKind::invalid);
}

TEST_P(StoreMoveTest, ResultsAreKeptUsedAndForgotten) {
  const RunId run = submit("flow", 2);
  apply(run, {ResultKept{"d1", "out", "flow-1/1", at_s(10)}, ResultKept{"d2", "", "x", at_s(11)}});
  apply(run,
        {ResultKept{"d1", "other", "flow-1/2", at_s(12)}, ResultKept{"d2", "", "x", at_s(20)}});
  reopen();
  EXPECT_EQ(text(store_->result("d1")), "result d1 'other' 'flow-1/2' used 12000000000");
  EXPECT_EQ(store_->result("d3").error().kind, ErrorKind::not_found);
  ASSERT_EQ(store_->results(0)->size(), 2U);
  ASSERT_EQ(store_->results(2)->size(), 1U) << "d2 is what it was";
  EXPECT_EQ(store_->results(2)->front().digest, "d1");
  const std::int64_t last = store_->results(2)->front().sequence;
  apply(run, {ResultKept{"d2", "", "y", at_s(20)}});
  ASSERT_EQ(store_->results(last)->size(), 1U);
  EXPECT_EQ(store_->results(last)->front().origin, "y");
  apply(run, {ResultKept{"d4", "", "", at_s(1)}, TaskKeyed{{1}, "d4", "text"}});
  EXPECT_EQ(store_->forget_results(at_s(20)), 1) << "d2 was used since, d4 is an open run's";
  EXPECT_EQ(store_->result("d1").error().kind, ErrorKind::not_found);
  apply(run, {RunMoved{RunState::done, at_s(30), ""}});
  EXPECT_EQ(store_->forget_results(at_s(20)), 1);
  EXPECT_EQ(store_->result("d4").error().kind, ErrorKind::not_found);
  ASSERT_TRUE(store_->remove(run));
  EXPECT_TRUE(store_->result("d2")) << "results outlive their run";
}

TEST_P(StoreMoveTest, ARefusedBatchKeepsNoResult) {
  const RunId run = submit("flow", 1);
  EXPECT_FALSE(apply(run, {ResultKept{"d1", "", "", at_s(1)}, TaskKeyed{{9}, "", ""}}));
  EXPECT_FALSE(store_->result("d1"));
  apply(run, {ResultKept{"d2", "", "", at_s(1)}});
  EXPECT_EQ(store_->result("d2")->sequence, 1);
}

TEST_P(StoreMoveTest, RunMovesThroughItsLife) {
  const RunId run = submit("a");
  const auto move = [&](RunState to, int at, const char* error = "") {
    EXPECT_TRUE(apply(run, {RunMoved{to, at_s(at), error}}));
    return store_->find_run("a-1").value();
  };
  RunRecord record = move(RunState::running, 5);
  EXPECT_EQ(record.started, at_s(5));
  EXPECT_FALSE(record.ended);
  record = move(RunState::failed, 6, "no such command");
  EXPECT_EQ(record.state, RunState::failed);
  EXPECT_EQ(record.ended, at_s(6));
  EXPECT_EQ(record.error, "no such command");
  record = move(RunState::running, 7);
  EXPECT_EQ(record.started, at_s(5)) << "the first time";
  EXPECT_FALSE(record.ended);
  EXPECT_EQ(record.error, "");
  EXPECT_EQ(move(RunState::stopped, 8).ended, at_s(8));
  EXPECT_FALSE(move(RunState::queued, 9).ended);
  EXPECT_EQ(move(RunState::done, 10).ended, at_s(10));
}

}  // namespace
}  // namespace berth::store
