// The contract of store.h, sentence by sentence, on every implementation.
#include "berth/store/store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "berth/testing/store_contract.h"

namespace berth::store {
namespace {

using enum TaskState;

INSTANTIATE_TEST_SUITE_P(Contract, StoreTest, backends(), backend_name);

TEST_P(StoreTest, NamesCountUpwardsAndAreNeverIssuedAgain) {
  EXPECT_EQ(store_->submit(new_run("a"))->name, "a-1");
  EXPECT_EQ(store_->submit(new_run("b"))->name, "b-1");
  const auto second = store_->submit(new_run("a"));
  EXPECT_EQ(second->name, "a-2");
  EXPECT_TRUE(store_->remove(second->id));
  reopen();
  const auto third = store_->submit(new_run("a"));
  EXPECT_EQ(third->name, "a-3");
  EXPECT_GT(third->id, second->id) << "ids are not reissued either";
}

TEST_P(StoreTest, SubmittedRunReadsBackWhole) {
  NewRun run = new_run("a");
  run.priority = -4;
  run.created = Wall(Duration(1'700'000'000'123'456'789));
  run.tasks[1].params = {{"z", "\"quoted\" \n \\ \x01 é 🙂"}, {"a", ""}, {"", "unnamed"}};
  run.tasks[2].label = "count/0";
  const auto submitted = store_->submit(run);
  ASSERT_TRUE(submitted) << submitted.error().message;
  reopen();
  EXPECT_EQ(text(*submitted), text(store_->find_run("a-1")));
  EXPECT_EQ(submitted->kind, "experiment");
  EXPECT_EQ(submitted->spec_json, run.spec_json);
  EXPECT_EQ(submitted->directory, "/home/ada");
  EXPECT_EQ(submitted->priority, -4);
  EXPECT_EQ(submitted->created, run.created);
  EXPECT_EQ(submitted->state, RunState::queued);
  EXPECT_EQ(submitted->epoch, 0);
  EXPECT_EQ(submitted->counts, Counts{.waiting = 3});
  const auto tasks = store_->tasks(submitted->id).value();
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].number, TaskNumber{1});
  EXPECT_EQ(tasks[1].params, run.tasks[1].params);
  EXPECT_EQ(tasks[2].label, "count/0");
  EXPECT_EQ(tasks[2].token, Token{0});
  EXPECT_EQ(tasks[2].attempts, 0);
  EXPECT_FALSE(tasks[2].started);
}

TEST_P(StoreTest, RunWithoutTasksIsARun) {
  const RunId run = submit("empty", 0);
  EXPECT_EQ(store_->tasks(run).value().size(), 0U);
  EXPECT_EQ(store_->runs().value().at(0).counts, Counts{});
}

TEST_P(StoreTest, SubmissionIsRefusedWhole) {
  NewRun twice = new_run("a");
  twice.tasks[2].label = "1";
  EXPECT_EQ(store_->submit(twice).error().kind, ErrorKind::exists);
  NewRun parameter_twice = new_run("a");
  parameter_twice.tasks[2].params = {{"lr", "1"}, {"lr", "2"}};
  EXPECT_EQ(store_->submit(parameter_twice).error().kind, ErrorKind::invalid);
  NewRun not_utf8 = new_run("a");
  not_utf8.tasks[2].params = {{"lr", "\xff"}};
  EXPECT_EQ(store_->submit(not_utf8).error().kind, ErrorKind::invalid);
  EXPECT_EQ(store_->submit(new_run("")).error().kind, ErrorKind::invalid);
  NewRun too_many;
  too_many.name = "a";
  too_many.tasks.resize(1'000'001);
  EXPECT_EQ(store_->submit(too_many).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(store_->runs().value().empty());
  EXPECT_EQ(store_->submit(new_run("a"))->name, "a-1") << "a refusal uses up no name";
}

TEST_P(StoreTest, RunsStandOldestFirstWithoutTheirSpecs) {
  submit("b");
  submit("a");
  submit("b");
  const auto runs = store_->runs().value();
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].name, "b-1");
  EXPECT_EQ(runs[1].name, "a-1");
  EXPECT_EQ(runs[2].name, "b-2");
  EXPECT_EQ(runs[0].spec_json, "");
}

TEST_P(StoreTest, WhatIsNotThereIsNotFound) {
  const RunId run = submit("a");
  const RunId none{run.value + 1};
  const auto kind = [](const auto& result) { return text(result); };
  const std::string not_found = "error not_found";
  ASSERT_EQ(not_found, "error " + std::string(name(ErrorKind::not_found)));
  EXPECT_EQ(kind(store_->take_over(none, 1, 1, at_s(1), {})), not_found);
  EXPECT_EQ(kind(apply(none, {})), not_found);
  EXPECT_EQ(kind(store_->find_run("a-2")), not_found);
  EXPECT_EQ(kind(store_->find_run("a")), not_found);
  EXPECT_EQ(kind(store_->tasks(none)), not_found);
  EXPECT_EQ(kind(store_->find_task(none, "1")), not_found);
  EXPECT_EQ(kind(store_->find_task(run, "4")), not_found);
  EXPECT_EQ(kind(store_->attempts(none, TaskNumber{1})), not_found);
  EXPECT_EQ(kind(store_->attempts(run, TaskNumber{0})), not_found);
  EXPECT_EQ(kind(store_->metrics(run, TaskNumber{4})), not_found);
  EXPECT_EQ(kind(store_->remove(none)), not_found);
  EXPECT_EQ(kind(apply(run, {started(4, 1)})), not_found);
  EXPECT_EQ(kind(apply(run, {moved(4, stopped)})), not_found);
  EXPECT_EQ(store_->attempts(run, TaskNumber{3}).value().size(), 0U);
  EXPECT_EQ(store_->metrics(run, TaskNumber{3}).value().size(), 0U);
}

TEST_P(StoreTest, TaskIsFoundByItsLabel) {
  NewRun run = new_run("a");
  run.tasks[1].label = "count/0";
  const RunId id = store_->submit(run)->id;
  submit("a");
  apply(id, {started(1, 1), seen(1, 1, "loss", 9), started(2, 2), seen(2, 2, "loss", 1)});
  EXPECT_EQ(text(store_->find_task(id, "count/0")), text(task(id, 2)));
  EXPECT_EQ(store_->find_task(id, "count/0")->number, TaskNumber{2});
}

TEST_P(StoreTest, AttemptLeavesItsWholeStory) {
  const RunId run = submit("a");
  AttemptEnded end = ended(2, 7, failed, at_s(30));
  end.exit_code = 137;
  end.cause = exec::Cause::out_of_memory;
  end.signal = 9;
  end.detail = "used 4 GiB of 2 GiB";
  end.cpu_ms = 1234;
  end.peak_mem = 1LL << 32;
  end.log_begin = 10;
  end.log_end = 99;
  EXPECT_EQ(refused(run, {started(2, 7)}), 0);
  EXPECT_EQ(task(run, 2).state, running);
  EXPECT_EQ(counts(), "2w 1r 0d 0c 0f 0s");
  EXPECT_FALSE(store_->attempts(run, TaskNumber{2}).value().at(0).ended);
  EXPECT_EQ(refused(run, {end}), 0);
  reopen();
  const TaskRecord after = task(run, 2);
  EXPECT_EQ(after.state, failed);
  EXPECT_EQ(after.attempts, 1);
  EXPECT_EQ(after.token, Token{7});
  EXPECT_EQ(after.exit_code, 137);
  EXPECT_EQ(after.cause, exec::Cause::out_of_memory);
  EXPECT_EQ(after.signal, 9);
  EXPECT_EQ(after.started, at_s(10));
  EXPECT_EQ(after.ended, at_s(30));
  EXPECT_EQ(after.resources, R"({"cpu":1000})");
  EXPECT_EQ(after.host, "ada-desk");
  EXPECT_EQ(after.devices, R"(["GPU-a"])");
  const AttemptRecord attempt = store_->attempts(run, TaskNumber{2}).value().at(0);
  EXPECT_EQ(
      text(attempt),
      "attempt 1 token 7 10000000000..30000000000 exit 137 'out of memory' "
      "'used 4 GiB of 2 GiB' '{\"cpu\":1000}' 'ada-desk' '[\"GPU-a\"]' 1234 4294967296 10 99 -");
}

TEST_P(StoreTest, AttemptsAreNumberedAndTheTaskShowsTheLatest) {
  const RunId run = submit("a");
  apply(run, {started(1, 1), ended(1, 1, waiting), started(1, 2, at_s(40))});
  const TaskRecord again = task(run, 1);
  EXPECT_EQ(again.attempts, 2);
  EXPECT_EQ(again.started, at_s(40));
  EXPECT_FALSE(again.ended);
  EXPECT_EQ(again.cause, exec::Cause::exit_code) << "of the last ended attempt";
  EXPECT_EQ(again.exit_code, 1);
  const auto attempts = store_->attempts(run, TaskNumber{1}).value();
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].number, 1);
  EXPECT_EQ(attempts[1].number, 2);
  EXPECT_EQ(attempts[1].token, Token{2});
}

TEST_P(StoreTest, AttemptStartsWithAGreaterTokenOfTheWholeRun) {
  const RunId run = submit("a");
  ASSERT_TRUE(apply(run, {started(1, 5)}));
  const std::string before = everything(*store_);
  EXPECT_EQ(apply(run, {started(2, 5)}).error().kind, ErrorKind::stale);
  EXPECT_EQ(apply(run, {started(2, 4)}).error().kind, ErrorKind::stale);
  EXPECT_EQ(apply(run, {started(2, 6), started(3, 6)}).error().kind, ErrorKind::stale);
  EXPECT_EQ(everything(*store_), before);
  EXPECT_TRUE(apply(submit("b"), {started(1, 1)})) << "another run counts for itself";
}

TEST_P(StoreTest, FinalTaskStartsNoAttempt) {
  const RunId run = submit("a");
  apply(run, {started(1, 1), ended(1, 1, done), moved(2, cached), moved(3, failed)});
  for (const int task : {1, 2, 3})
    EXPECT_EQ(apply(run, {started(task, 9)}).error().kind, ErrorKind::stale) << task;
  EXPECT_EQ(counts(), "0w 0r 1d 1c 1f 0s");
}

TEST_P(StoreTest, StoppedTaskMayStart) {
  const RunId run = submit("a");
  EXPECT_TRUE(apply(run, {moved(1, stopped), started(1, 1)}));
  EXPECT_EQ(task(run, 1).state, running);
  EXPECT_EQ(counts(), "2w 1r 0d 0c 0f 0s");
}

TEST_P(StoreTest, StartingARunningTaskEndsItsEarlierAttempt) {
  const RunId run = submit("a");
  apply(run, {started(1, 1), started(1, 2, at_s(12))});
  const auto attempts = store_->attempts(run, TaskNumber{1}).value();
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].ended, at_s(12));
  EXPECT_EQ(attempts[0].cause, exec::Cause::superseded);
  EXPECT_FALSE(attempts[1].ended);
  EXPECT_EQ(refused(run, {ended(1, 1)}), 1);
  EXPECT_EQ(refused(run, {ended(1, 2)}), 0);
  EXPECT_EQ(counts(), "2w 0r 1d 0c 0f 0s");
}

TEST_P(StoreTest, AttemptEndsOnce) {
  const RunId run = submit("a");
  apply(run, {started(1, 1)});
  EXPECT_EQ(refused(run, {ended(1, 2)}), 1) << "a token never given";
  EXPECT_EQ(refused(run, {ended(2, 1)}), 1) << "another task's";
  EXPECT_EQ(refused(run, {ended(9, 1)}), 1) << "no such task";
  EXPECT_EQ(refused(run, {ended(1, 1, done), ended(1, 1, failed)}), 1);
  EXPECT_EQ(refused(run, {ended(1, 1, failed)}), 1);
  EXPECT_EQ(task(run, 1).state, done);
  EXPECT_EQ(task(run, 1).cause, exec::Cause::ok);
  EXPECT_EQ(counts(), "2w 0r 1d 0c 0f 0s");
}

TEST_P(StoreTest, StaleTokenCannotEndTheNextAttempt) {
  const RunId run = submit("a");
  apply(run, {started(1, 1), ended(1, 1, waiting), started(1, 2)});
  EXPECT_EQ(refused(run, {ended(1, 1, done)}), 1);
  EXPECT_EQ(task(run, 1).state, running);
  EXPECT_EQ(refused(run, {ended(1, 2, done)}), 0);
  EXPECT_EQ(task(run, 1).state, done);
}

TEST_P(StoreTest, EndAndMoveLeadOnlyWhereTheyMay) {
  const RunId run = submit("a");
  apply(run, {started(1, 1)});
  const std::string before = everything(*store_);
  for (const TaskState next : {running, cached})
    EXPECT_EQ(apply(run, {ended(1, 1, next)}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(apply(run, {moved(2, running)}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(everything(*store_), before);
  apply(run, {ended(1, 1, stopped)});
  EXPECT_EQ(task(run, 1).state, stopped);
}

TEST_P(StoreTest, WhatIsSkippedIsFinalAndCountsByItself) {
  const RunId run = submit("a");
  ASSERT_TRUE(apply(run, {moved(1, TaskState::skipped)}));
  reopen();
  EXPECT_EQ(task(run, 1).state, TaskState::skipped);
  EXPECT_EQ(store_->find_run("a-1")->counts, (Counts{.waiting = 2, .skipped = 1}));
  EXPECT_EQ(apply(run, {started(1, 1)}).error().kind, ErrorKind::stale);
  EXPECT_EQ(apply(run, {ended(1, 1, TaskState::skipped)}).error().kind, ErrorKind::invalid);
  ASSERT_TRUE(apply(run, {TaskReopened{{1}}}));
  EXPECT_EQ(store_->find_run("a-1")->counts, (Counts{.waiting = 3}));
}

TEST_P(StoreTest, ARunCanBeAskedForAnotherThing) {
  const RunId run = submit("a"), other = submit("a");
  const std::string before = store_->find_run("a-2")->spec_json;
  ASSERT_TRUE(apply(run, {RunSpecified{R"({"run":"b"})"}}));
  reopen();
  EXPECT_EQ(store_->find_run("a-1")->spec_json, R"({"run":"b"})");
  EXPECT_EQ(store_->find_run("a-2")->spec_json, before) << other.value;
}

TEST_P(StoreTest, MetricsKeepTheirOrderAndTheirLastValue) {
  const RunId run = submit("a");
  apply(run, {started(1, 1), started(2, 2), seen(1, 1, "z", 1), seen(2, 2, "z", 5),
              seen(1, 1, "a", 0.5), seen(1, 1, "z", 2)});
  reopen();
  EXPECT_EQ(task(run, 1).metrics, (Numbers{{"z", 2}, {"a", 0.5}}));
  EXPECT_EQ(task(run, 2).metrics, (Numbers{{"z", 5}}));
  EXPECT_EQ(text(store_->metrics(run, TaskNumber{1})),
            "metric 1 token 1 z=1 at 15000000000\n"
            "metric 3 token 1 a=0.5 at 15000000000\n"
            "metric 4 token 1 z=2 at 15000000000\n");
}

TEST_P(StoreTest, MetricsOfLaterAttemptsReplaceEarlierOnes) {
  const RunId run = submit("a");
  apply(run, {started(1, 1), seen(1, 1, "loss", 1), seen(1, 1, "lr", 3), ended(1, 1, waiting),
              started(1, 2), seen(1, 2, "loss", 2)});
  EXPECT_EQ(task(run, 1).metrics, (Numbers{{"loss", 2}, {"lr", 3}}));
  EXPECT_EQ(store_->metrics(run, TaskNumber{1}).value().size(), 3U);
}

TEST_P(StoreTest, MetricOfAStaleTokenIsIgnored) {
  const RunId run = submit("a");
  apply(run, {seen(1, 0, "loss", 1), started(1, 1), seen(1, 2, "loss", 1), seen(2, 1, "loss", 1),
              seen(9, 1, "loss", 1)});
  apply(run, {ended(1, 1, waiting), seen(1, 1, "loss", 1), started(1, 3), seen(1, 1, "loss", 1)});
  EXPECT_TRUE(store_->metrics(run, TaskNumber{1}).value().empty());
  EXPECT_TRUE(task(run, 1).metrics.empty());
}

TEST_P(StoreTest, MetricsMayBeAnyDouble) {
  const RunId run = submit("a");
  const double infinite = std::numeric_limits<double>::infinity();
  apply(run, {started(1, 1), seen(1, 1, "nan", std::nan("")), seen(1, 1, "inf", -infinite),
              seen(1, 1, "tiny", 5e-324), seen(1, 1, "third", 1.0 / 3)});
  const Numbers metrics = task(run, 1).metrics;
  ASSERT_EQ(metrics.size(), 4U);
  EXPECT_TRUE(std::isnan(metrics[0].second));
  EXPECT_EQ(metrics[1].second, -infinite);
  EXPECT_EQ(metrics[2].second, 5e-324);
  EXPECT_EQ(metrics[3].second, 1.0 / 3);
  EXPECT_TRUE(std::isnan(store_->metrics(run, TaskNumber{1}).value().at(0).value));
  apply(run, {started(2, 2), seen(2, 2, "loss", kMissing)});
  EXPECT_TRUE(store_->metrics(run, TaskNumber{2}).value().empty());
}

TEST_P(StoreTest, DevicesAreThoseThatTheWorkerChose) {
  const RunId run = submit("a");
  const auto placed = [](std::int64_t token, const char* devices) {
    return AttemptPlaced{TaskNumber{1}, Token{token}, devices};
  };
  ASSERT_TRUE(apply(run, {started(1, 1), placed(1, "[\"GPU-b\"]")}));
  EXPECT_EQ(task(run, 1).devices, "[\"GPU-b\"]");
  ASSERT_TRUE(apply(run, {placed(1, "[\"GPU-c\"]"), placed(7, "[\"GPU-d\"]")}));
  EXPECT_EQ(task(run, 1).devices, "[\"GPU-c\"]");
  ASSERT_TRUE(apply(run, {started(2, 2),
                          {AttemptPlaced{TaskNumber{2}, Token{2}, "[]"}},
                          ended(1, 1),
                          placed(1, "late")}));
  EXPECT_EQ(task(run, 1).devices, "[\"GPU-c\"]");
  EXPECT_EQ(task(run, 2).devices, "[]");
}

TEST_P(StoreTest, OfTwoPlacesInABatchTheLaterCounts) {
  const RunId run = submit("a");
  const auto placed = [](const char* devices, std::optional<Wall> at) {
    return AttemptPlaced{TaskNumber{1}, Token{1}, devices, at};
  };
  ASSERT_TRUE(apply(run, {started(1, 1)}));
  ASSERT_TRUE(apply(run, {placed("[\"GPU-b\"]", at_s(12)), placed("[\"GPU-c\"]", {})}));
  EXPECT_EQ(task(run, 1).devices, "[\"GPU-c\"]");
  EXPECT_EQ(task(run, 1).started, at_s(12));
}

TEST_P(StoreTest, WhatWasSentAheadStartedWhenItsWorkerSaysSo) {
  const RunId run = submit("a");
  const Wall later = started(1, 1).at + std::chrono::seconds(3);
  ASSERT_TRUE(apply(run, {started(1, 1)}));
  ASSERT_TRUE(apply(run, {{AttemptPlaced{TaskNumber{1}, Token{1}, "[]", later}}}));
  EXPECT_EQ(task(run, 1).started, later);
  EXPECT_EQ(store_->attempts(run, TaskNumber{1}).value().at(0).started, later);
}

TEST_P(StoreTest, TextsAreKeptByteForByte) {
  const RunId run = submit("a");
  const std::string bytes("a\0b\xff'\"", 6);
  AttemptStarted start = started(1, 1);
  start.host = bytes;
  AttemptEnded end = ended(1, 1);
  end.detail = bytes;
  ASSERT_TRUE(apply(run, {start, MetricSeen{TaskNumber{1}, Token{1}, bytes, 1, at_s(1)}, end,
                          RunMoved{RunState::failed, at_s(2), bytes}}));
  EXPECT_EQ(task(run, 1).host, bytes);
  EXPECT_EQ(store_->attempts(run, TaskNumber{1}).value().at(0).detail, bytes);
  EXPECT_EQ(task(run, 1).metrics.at(0).first, bytes);
  EXPECT_EQ(store_->runs().value().at(0).error, bytes);
}

TEST_P(StoreTest, BatchIsAllOrNothing) {
  const RunId run = submit("a", 4);
  apply(run, {started(1, 1), started(2, 2), ended(2, 2, done)});
  const std::string before = everything(*store_);
  const std::vector<Change> good = {seen(1, 1, "loss", 1), ended(1, 1), started(3, 3),
                                    moved(4, stopped), RunMoved{RunState::running, at_s(3), ""}};
  std::vector<Change> bad = good;
  bad.insert(bad.begin() + 3, started(2, 9));
  EXPECT_EQ(apply(run, bad).error().kind, ErrorKind::stale);
  EXPECT_EQ(everything(*store_), before);
  bad[3] = moved(5, stopped);
  EXPECT_EQ(apply(run, bad).error().kind, ErrorKind::not_found);
  EXPECT_EQ(everything(*store_), before);
  EXPECT_TRUE(apply(run, good)) << "and the same tokens are still to be had";
  EXPECT_EQ(counts(), "0w 1r 2d 0c 0f 1s");
}

TEST_P(StoreTest, RemoveTakesTheTasksAndNothingElse) {
  const RunId first = submit("a");
  const RunId second = submit("a");
  for (const RunId run : {first, second})
    apply(run, {started(1, 1), seen(1, 1, "loss", 1), ended(1, 1)});
  const std::string kept = text(store_->tasks(second));
  EXPECT_TRUE(store_->remove(first));
  reopen();
  EXPECT_EQ(store_->find_run("a-1").error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->tasks(first).error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->attempts(first, TaskNumber{1}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->metrics(first, TaskNumber{1}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->runs().value().size(), 1U);
  EXPECT_EQ(text(store_->tasks(second)), kept);
}

TEST(States, NamesReadBack) {
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(run_state(name(static_cast<RunState>(i))), static_cast<RunState>(i));
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(task_state(name(static_cast<TaskState>(i))), static_cast<TaskState>(i));
  EXPECT_EQ(name(RunState::failed), "failed");
  EXPECT_EQ(name(cached), "cached");
  EXPECT_FALSE(run_state("cached"));
  EXPECT_FALSE(task_state(""));
  EXPECT_TRUE(final(done) && final(cached) && final(failed));
  EXPECT_FALSE(final(waiting) || final(running) || final(stopped));
}

TEST_P(StoreTest, ALeaseIsThatOfTheLatestAttemptAndKeptByItsTokenAlone) {
  const RunId run = submit("a", 1);
  AttemptStarted claim = started(1, 1);
  claim.lease = 40;
  ASSERT_TRUE(apply(run, {claim}));
  EXPECT_EQ(task(run, 1).lease, 40);
  ASSERT_TRUE(apply(run, {AttemptKept{{1}, Token{1}, 70}}));
  ASSERT_TRUE(apply(run, {AttemptKept{{1}, Token{2}, 99}})) << "ignored";
  reopen();
  EXPECT_EQ(task(run, 1).lease, 70);
  claim.token = Token{2};
  claim.lease = 90;
  ASSERT_TRUE(apply(run, {claim, AttemptKept{{1}, Token{2}, 95}}));
  ASSERT_TRUE(apply(run, {AttemptKept{{1}, Token{1}, 99}})) << "of one that was superseded";
  const auto attempts = store_->attempts(run, {1}).value();
  EXPECT_EQ(attempts[0].lease, 70);
  EXPECT_EQ(attempts[1].lease, 95);
  EXPECT_EQ(task(run, 1).lease, 95);
  EXPECT_EQ(refused(run, {ended(1, 1)}), 1);
  ASSERT_TRUE(apply(run, {started(1, 3)}));
  EXPECT_FALSE(task(run, 1).lease) << "a runner's attempts have none";
}

TEST_P(StoreTest, OfTwoClaimsWithOneTokenOneIsRefused) {
  const RunId run = submit("a", 2);
  ASSERT_TRUE(apply(run, {started(1, 1)}));
  EXPECT_EQ(apply(run, {started(1, 1)}).error().kind, ErrorKind::stale);
  EXPECT_EQ(apply(run, {started(2, 1)}).error().kind, ErrorKind::stale);
  EXPECT_EQ(apply(run, {TasksAdded{{{"3", {}}}}, started(3, 1)}).error().kind, ErrorKind::stale);
  EXPECT_EQ(store_->tasks(run)->size(), 2U) << "all or nothing";
}

TEST_P(StoreTest, ParametersAreSetByWhoeverHoldsTheTask) {
  const RunId run = submit("a", 1);
  const auto set = [&](std::int64_t token, Values params) {
    return apply(run, {ParamsSet{{1}, Token{token}, std::move(params)}});
  };
  const Values before = task(run, 1).params, after{{"x", "1"}, {"b", "é"}};
  ASSERT_TRUE(set(1, after)) << "ignored: it does not run";
  ASSERT_TRUE(apply(run, {started(1, 1)}));
  ASSERT_TRUE(set(2, after));
  EXPECT_EQ(task(run, 1).params, before);
  ASSERT_TRUE(set(1, after));
  reopen();
  EXPECT_EQ(task(run, 1).params, after);
  EXPECT_EQ(set(1, {{"x", "1"}, {"x", "2"}}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(set(1, {{"x", "\xff"}}).error().kind, ErrorKind::invalid);
  ASSERT_TRUE(
      apply(run, {TasksAdded{{{"2", {}}}}, started(2, 2), ParamsSet{{2}, Token{2}, {{"y", "1"}}},
                  ParamsSet{{2}, Token{2}, after}}));
  EXPECT_EQ(task(run, 2).params, after) << "in the batch that adds it; the last one counts";
}

TEST_P(StoreTest, NewsAreTheOpenTasksAndWhatWasAdded) {
  const RunId run = submit("a", 5);
  ASSERT_TRUE(apply(run, {started(2, 7), seen(2, 7, "loss", 0.5)}));
  const std::vector<TaskNumber> open{{2}, {1}};
  const auto news = store_->news(run, open, {3}).value();
  EXPECT_EQ(news.last_token, Token{7});
  EXPECT_EQ(text(news.run.counts), "4w 1r 0d 0c 0f 0s");
  const auto all = store_->tasks(run).value();
  EXPECT_EQ(text(news.tasks), text(std::vector{all[1], all[0], all[3], all[4]}));
  EXPECT_TRUE(store_->news(run, {}, {5})->tasks.empty());
  const std::vector<TaskNumber> in_a_row{{1}, {2}, {3}, {5}};
  EXPECT_EQ(text(store_->news(run, in_a_row, {5})->tasks),
            text(std::vector{all[0], all[1], all[2], all[4]}));
  const std::vector<TaskNumber> none{{5}, {6}};
  EXPECT_EQ(store_->news(run, none, {5}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->news({99}, {}, {0}).error().kind, ErrorKind::not_found);
}

TEST_P(StoreTest, MetricsAreListedFromAnySequenceNumberOn) {
  const RunId run = submit("a", 1);
  ASSERT_TRUE(
      apply(run, {started(1, 1), seen(1, 1, "f", 1), seen(1, 1, "g", 2), seen(1, 1, "f", 3)}));
  EXPECT_EQ(text(store_->metrics(run, {1}, 3).value()), "");
  EXPECT_EQ(store_->metrics(run, {1}, 1)->size(), 2U);
  EXPECT_EQ(store_->metrics(run, {1}, 2)->front().value, 3);
}

}  // namespace
}  // namespace berth::store
