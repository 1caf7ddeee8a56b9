// Studies that share a run, on every store: what one claims no other gets, what is told counts
// once.
#include "berth/run/studies/study.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"
#include "berth/testing/fake_env.h"
#include "berth/testing/store_contract.h"

namespace berth::run {
namespace {

using experiment::Program;
using experiment::Search;
using store::TaskState;

constexpr auto kLease = std::chrono::seconds(30);

Program searching(Search::Method method, std::int64_t samples) {
  Program program;
  program.name = "s";
  program.params = {{.name = "x", .choices = {}, .min = -2, .max = 2},
                    {.name = "k", .choices = {"a", "b"}}};
  program.search.method = method;
  program.search.samples = samples;
  program.goal = experiment::Goal{.metric = "f", .maximize = false};
  return program;
}

class StudyTest : public store::StoreTest {
 protected:
  Study submit(Program program) {
    auto run = Study::submit(*store_, env_, std::move(program), "/");
    EXPECT_TRUE(run) << run.error().message;
    return open();
  }
  Study submit(std::int64_t samples = 4) { return submit(searching(Search::Method::tpe, samples)); }
  static constexpr const char* kRuns = "/state/runs";  // of the state directory that all share
  Study open() { return Study::open(*store_, env_, "s-1", kRuns).value(); }

  /// The label of the trial that was claimed; or "later", or "over".
  static std::string ask(Study& study) {
    const auto asked = study.ask();
    if (!asked) return asked.error().message;
    if (std::holds_alternative<Study::Later>(*asked)) return "later";
    if (std::holds_alternative<Study::Over>(*asked)) return "over";
    return study.trial(std::get<TaskNumber>(*asked)).label;
  }
  static Token token(Study& study, const std::string& label) {
    return study.trial(study.find(label).value()).token;
  }
  static Status tell(Study& study, const std::string& label, double f,
                     std::optional<Token> token = {}) {
    return study.tell(label, token, {.metrics = {{"f", f}}});
  }
  static TaskState state(Study& study, const std::string& label) {
    EXPECT_TRUE(study.refresh());
    return study.trial(study.find(label).value()).state;
  }
  static ErrorKind kind(const Status& status) {
    return status ? ErrorKind::unconfirmed : status.error().kind;
  }

  os::FakeEnv env_;
};

INSTANTIATE_TEST_SUITE_P(Claims, StudyTest, store::backends(), store::backend_name);

TEST_P(StudyTest, WhatOneClaimsNoOtherGets) {
  Study one = submit(), other = open();
  EXPECT_EQ(ask(one), "1");
  EXPECT_EQ(ask(other), "2");
  EXPECT_EQ(ask(one), "3");
  EXPECT_EQ(ask(other), "4");
  EXPECT_EQ(ask(other), "later") << "those that are out may come back";
  EXPECT_TRUE(tell(one, "1", 3));
  ASSERT_TRUE(other.refresh());
  EXPECT_EQ(other.best()->label, "1") << "what one told the other knows";
  EXPECT_TRUE(tell(other, "2", 1));
  EXPECT_TRUE(tell(one, "3", 2));
  EXPECT_EQ(store_->find_run("s-1")->state, store::RunState::running);
  EXPECT_TRUE(tell(other, "4", 4));
  const auto run = store_->find_run("s-1").value();
  EXPECT_EQ(run.state, store::RunState::done);
  EXPECT_EQ(run.result,
            R"({"done":4,"cached":0,"skipped":0,"failed":0,"best":{"task":"2","value":1}})");
  EXPECT_EQ(ask(one), "over");
}

TEST_P(StudyTest, AClaimComesBackWhenItsLeaseHasRunOut) {
  Study one = submit(), other = open();
  EXPECT_EQ(ask(one), "1");
  const Token first = token(one, "1");
  env_.freeze(kLease / 2);
  ASSERT_TRUE(one.renew());
  env_.freeze(kLease / 2 + std::chrono::seconds(1));
  EXPECT_EQ(ask(other), "2") << "it was renewed";
  env_.freeze(kLease / 2);
  EXPECT_EQ(ask(other), "1");
  EXPECT_EQ(kind(tell(one, "1", 3, first)), ErrorKind::stale);
  EXPECT_TRUE(tell(other, "1", 5));
  EXPECT_EQ(kind(tell(one, "1", 3, first)), ErrorKind::stale);
  EXPECT_EQ(one.best()->metrics, (store::Numbers{{"f", 5}}));
  const auto attempts = store_->attempts(one.record().id, {1}).value();
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].cause, exec::Cause::superseded);
}

TEST_P(StudyTest, AClaimOfAnotherMachineIsWatchedNotCompared) {
  Study one = submit();
  os::FakeEnv there{env_, os::FakeEnv::On::another_machine, {2000, 1}};
  there.host = "elsewhere";
  there.wall_skew = std::chrono::hours(9);
  Study other = Study::open(*store_, there, "s-1").value();
  EXPECT_EQ(ask(one), "1");
  EXPECT_EQ(ask(other), "2") << "by its own clock the lease ran out long ago";
  there.freeze(kLease - std::chrono::seconds(1));
  EXPECT_EQ(ask(other), "3");
  ASSERT_TRUE(one.renew());
  there.freeze(std::chrono::seconds(2));
  EXPECT_EQ(ask(other), "4") << "it was renewed";
  there.freeze(kLease);
  EXPECT_EQ(ask(other), "1") << "it was not renewed for the length of a lease";
}

/// A test with processes that share a state directory.
class StudyClocks : public StudyTest {
 protected:
  /// A command that asks for one trial and ends.
  std::string ask_once() {
    Study study = open();
    return ask(study);
  }
};

INSTANTIATE_TEST_SUITE_P(Clocks, StudyClocks, store::backends(), store::backend_name);

TEST_P(StudyClocks, AClockThatIsSetForwardTakesNoTrialFromALivingHolder) {
  submit();
  Study holder = open(), other = open();
  EXPECT_EQ(ask(holder), "1");
  env_.wall_skew = std::chrono::hours(24);
  EXPECT_EQ(ask(other), "2");
  env_.freeze(kLease / 2);
  ASSERT_TRUE(holder.renew() && other.renew());
  env_.freeze(kLease / 2 + std::chrono::seconds(1));
  EXPECT_EQ(ask_once(), "3") << "it was renewed";
  EXPECT_TRUE(tell(holder, "1", 1, token(holder, "1")));
}

TEST_P(StudyClocks, AClockThatIsSetBackKeepsNoTrialOfADeadHolder) {
  submit();
  EXPECT_EQ(ask_once(), "1");
  env_.wall_skew = -std::chrono::hours(24);
  EXPECT_EQ(ask_once(), "2");
  env_.freeze(kLease);
  EXPECT_EQ(ask_once(), "1");
}

TEST_P(StudyClocks, ARenewalAfterTheClockIsSetBackIsSeen) {
  submit();
  Study holder = open();
  EXPECT_EQ(ask(holder), "1");
  env_.wall_skew = -std::chrono::hours(24);
  for (int i = 0; i < 3; ++i) {
    env_.freeze(kLease * 2 / 3);
    ASSERT_TRUE(holder.renew());
  }
  EXPECT_EQ(ask_once(), "2");
}

TEST_P(StudyClocks, CommandsThatRunOnceWaitForOneLeaseTogether) {
  submit();
  Study far = Study::open(*store_, env_, "s-1").value();  // its sightings are not in the file
  EXPECT_EQ(ask(far), "1");
  EXPECT_EQ(ask_once(), "2") << "it sees the claim of 1 first now";
  env_.freeze(kLease - std::chrono::seconds(1));
  EXPECT_EQ(ask_once(), "3");
  env_.freeze(std::chrono::seconds(1));
  EXPECT_EQ(ask_once(), "1");
}

TEST_P(StudyClocks, SightingsOfAnotherBootClockCountForNothing) {
  submit();
  EXPECT_EQ(ask_once(), "1");
  ASSERT_TRUE(env_.symbolic_link("time:[1]", "/proc/self/ns/time"));
  env_.freeze(kLease);
  EXPECT_EQ(ask_once(), "2") << "it sees the claim of 1 first now";
  env_.freeze(kLease);
  EXPECT_EQ(ask_once(), "1");
}

TEST_P(StudyClocks, ATimeLimitIsMeasuredByTheBootClock) {
  Program program = searching(Search::Method::tpe, 2);
  program.timeout = std::chrono::seconds(5);
  submit(std::move(program));
  Study holder = open();
  EXPECT_EQ(ask(holder), "1");
  env_.wall_skew = std::chrono::hours(24);
  EXPECT_EQ(ask_once(), "2");
  EXPECT_TRUE(tell(holder, "1", 1)) << "it has run for no time";
  env_.wall_skew = -std::chrono::hours(24);
  env_.freeze(std::chrono::seconds(5));
  EXPECT_EQ(ask_once(), "over");
  EXPECT_EQ(store_->attempts(holder.record().id, {2})->back().cause, exec::Cause::time_limit);
}

TEST_P(StudyClocks, ADamagedFileOfSightingsIsReplaced) {
  submit();
  ASSERT_TRUE(env_.make_directory("/state/runs/s-1", 0700));
  ASSERT_TRUE(env_.replace_file("/state/runs/s-1/leases", "x\nboot 1 1 y 0 0\nboot 1 1 1\n", 0600));
  Study dead = open();
  EXPECT_EQ(ask(dead), "1");
  env_.freeze(kLease);
  EXPECT_EQ(ask_once(), "1");
}

TEST_P(StudyTest, WhatIsGivenBackIsAskedForNext) {
  Study one = submit(), other = open();
  EXPECT_EQ(ask(one), "1");
  EXPECT_EQ(ask(one), "2");
  EXPECT_TRUE(tell(one, "2", 1));
  ASSERT_TRUE(one.give_back());
  EXPECT_EQ(ask(other), "1");
  EXPECT_EQ(kind(tell(one, "1", 1, Token{1})), ErrorKind::stale);
}

TEST_P(StudyTest, WhatLosesItsWorkersAgainAndAgainHasFailed) {
  Study study = submit(1);
  for (int i = 0; i < kMostLost; ++i) {
    EXPECT_EQ(ask(study), "1");
    ASSERT_TRUE(study.give_back());
  }
  EXPECT_EQ(ask(study), "over");
  EXPECT_EQ(state(study, "1"), TaskState::failed);
  EXPECT_EQ(store_->find_run("s-1")->state, store::RunState::failed);
}

TEST_P(StudyTest, WhatIsFrozenAgainAndAgainHasFailed) {
  Study study = submit(1);
  for (int i = 0; i < kMostLost; ++i) {
    Study frozen = open();
    EXPECT_EQ(ask(frozen), "1");
    env_.freeze(kLease);
  }
  EXPECT_EQ(ask(study), "over");
  const auto last = store_->attempts(study.record().id, {1})->back();
  EXPECT_EQ(last.cause, exec::Cause::worker_lost);
  EXPECT_EQ(last.detail, "the process that ran it was lost repeatedly");
}

TEST_P(StudyTest, AFailedOneIsTriedAgainAsOftenAsItMay) {
  Program program = searching(Search::Method::random, 1);
  program.retries = 1;
  Study study = submit(std::move(program));
  EXPECT_EQ(ask(study), "1");
  ASSERT_TRUE(study.give_back());  // uses up no retry
  for (const auto after : {TaskState::waiting, TaskState::failed}) {
    EXPECT_EQ(ask(study), "1");
    ASSERT_TRUE(study.tell("1", {}, {.kind = TrialEnd::Kind::failed, .reason = "no power"}));
    EXPECT_EQ(state(study, "1"), after);
  }
  EXPECT_EQ(store_->attempts(study.record().id, {1})->back().detail, "no power");
  EXPECT_EQ(ask(study), "over");
}

TEST_P(StudyTest, WhatTakesTooLongHasFailed) {
  Program program = searching(Search::Method::tpe, 1);
  program.timeout = std::chrono::seconds(5);
  Study study = submit(std::move(program));
  EXPECT_EQ(ask(study), "1");
  env_.freeze(std::chrono::seconds(5));
  EXPECT_EQ(ask(study), "over");
  EXPECT_EQ(store_->attempts(study.record().id, {1})->back().cause, exec::Cause::time_limit);
}

TEST_P(StudyTest, NoMoreAreOutThanParallelAllows) {
  Program program = searching(Search::Method::random, 9);
  program.parallel = 2;
  Study one = submit(std::move(program)), other = open();
  EXPECT_EQ(ask(one), "1");
  EXPECT_EQ(ask(other), "2");
  EXPECT_EQ(ask(one), "later");
  EXPECT_TRUE(tell(other, "2", 1));
  EXPECT_EQ(ask(one), "3");
}

TEST_P(StudyTest, EveryPointOfAGridOnceWhateverIsEnqueued) {
  Program program = searching(Search::Method::grid, 0);
  program.params[0].points = 3;
  Study one = submit(std::move(program)), other = open();
  EXPECT_EQ(one.enqueue({{"k", "b"}, {"x", "0"}})->value, 1);
  EXPECT_FALSE(one.enqueue({{"k", "c"}}));
  EXPECT_FALSE(one.enqueue({{"z", "1"}}));
  std::set<std::string> points;
  for (int i = 0; i < 6; ++i) {
    Study& study = i % 2 == 0 ? one : other;
    EXPECT_EQ(ask(study), std::to_string(i + 1));
    points.insert(experiment::values_json(study.trials().back().params));
    EXPECT_TRUE(tell(study, std::to_string(i + 1), i));
  }
  EXPECT_EQ(points.size(), 6U);
  EXPECT_EQ(ask(other), "over");
  EXPECT_EQ(kind(other.set_samples(9)), ErrorKind::usage);
}

TEST_P(StudyTest, ASequenceInItsOrderWithWhatItHasTwice) {
  Program program = searching(Search::Method::sequence, 0);
  program.params.clear();
  program.search.points = {{{"x", "2"}}, {{"x", "1"}, {"y", "a"}}, {{"x", "2"}}};
  const auto points = program.search.points;
  Study study = submit(std::move(program));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ask(study), std::to_string(i + 1));
    EXPECT_EQ(study.trials().back().params, points[i]);
    EXPECT_TRUE(tell(study, std::to_string(i + 1), 0));
  }
  EXPECT_EQ(ask(study), "over");
}

TEST_P(StudyTest, MoreSamplesLetItGoOn) {
  Study one = submit(1), other = open();
  EXPECT_EQ(ask(one), "1");
  EXPECT_TRUE(tell(one, "1", 1));
  EXPECT_EQ(ask(other), "over");
  ASSERT_TRUE(one.set_samples(2));
  EXPECT_EQ(ask(other), "2");
  EXPECT_EQ(store_->find_run("s-1")->state, store::RunState::running);
}

TEST_P(StudyTest, AStoppedOneIsAskedForNothingAndStillTold) {
  Study study = submit();
  EXPECT_EQ(ask(study), "1");
  ASSERT_TRUE(store_->apply(study.record().id,
                            {{store::RunMoved{store::RunState::stopped, env_.wall(), ""}}}));
  EXPECT_EQ(ask(study), "over");
  EXPECT_TRUE(tell(study, "1", 1));
  Study again = open();
  EXPECT_EQ(ask(again), "2");
}

TEST_P(StudyTest, AGoalThatIsNotFiniteFailsTheTrial) {
  Study study = submit();
  EXPECT_EQ(ask(study), "1");
  EXPECT_TRUE(tell(study, "1", HUGE_VAL));
  const auto trial = store_->tasks(study.record().id)->at(0);
  EXPECT_EQ(trial.state, store::TaskState::failed);
}

TEST_P(StudyTest, WhatMakesNoSenseIsRefused) {
  Study study = submit();
  EXPECT_EQ(ask(study), "1");
  EXPECT_EQ(kind(study.tell("1", {}, {.metrics = {{"g", 1}}})), ErrorKind::invalid);
  EXPECT_EQ(kind(tell(study, "7", 1)), ErrorKind::not_found);
  EXPECT_TRUE(tell(study, "1", 1));
  EXPECT_EQ(kind(tell(study, "1", 1)), ErrorKind::invalid);
  EXPECT_FALSE(Study::submit(*store_, env_, searching(Search::Method::external, 3), "/"));
  ASSERT_TRUE(store_->submit(store::new_run("other")));
  EXPECT_EQ(Study::open(*store_, env_, "other-1").error().kind, ErrorKind::usage);
}

TEST_P(StudyTest, TheSpaceGrowsByWhatTrialsAskFor) {
  Program program = searching(Search::Method::tpe, 99);
  program.params.clear();
  Study one = submit(std::move(program)), other = open();
  const experiment::Parameter lr{.name = "lr", .choices = {}, .min = 0, .max = 1};
  const experiment::Parameter net{.name = "net", .choices = {"deep", "wide"}};
  EXPECT_EQ(ask(one), "1");
  const auto value = one.suggest("1", lr).value();
  EXPECT_EQ(one.suggest("1", lr), value) << "asked again it is the same";
  EXPECT_EQ(ask(one), "2");
  EXPECT_EQ(one.suggest("1", lr), value);
  EXPECT_TRUE(one.suggest("2", net));
  EXPECT_TRUE(tell(one, "1", 1));
  EXPECT_EQ(store_->find_task(one.record().id, "1")->params, (store::Values{{"lr", value}}));
  EXPECT_EQ(ask(other), "3") << "with both, which it has heard of";
  EXPECT_EQ(other.trials().back().params.size(), 2U);
  EXPECT_TRUE(other.suggest("3", net));
  EXPECT_TRUE(tell(other, "3", 1));
  const auto params = store_->find_task(one.record().id, "3")->params;
  ASSERT_EQ(params.size(), 1U) << "what it did not ask for it has not tried";
  EXPECT_EQ(params[0].first, "net");
  experiment::Parameter wider = lr;
  wider.max = 2;
  EXPECT_EQ(one.suggest("2", wider).error().kind, ErrorKind::invalid);
  EXPECT_EQ(one.suggest("3", lr).error().kind, ErrorKind::stale) << "another's";
}

TEST_P(StudyTest, AReleasedTrialIsAskedForAgainAndCountsAsNoFailure) {
  Program program = searching(Search::Method::random, 1);
  program.parallel = 1;
  Study study = submit(std::move(program));
  for (int i = 0; i < 2 * kMostLost; ++i) {
    EXPECT_EQ(ask(study), "1");
    const auto again = study.ask().value();
    EXPECT_EQ(std::get<Study::Later>(again).own, std::vector<std::string>{"1"});
    ASSERT_TRUE(study.release("1", {}));
    EXPECT_EQ(kind(study.release("1", {})), ErrorKind::stale);
  }
  EXPECT_EQ(ask(study), "1");
  Study other = open();
  EXPECT_TRUE(std::get<Study::Later>(other.ask().value()).own.empty()) << "another's";
  EXPECT_TRUE(tell(study, "1", 1));
  EXPECT_EQ(ask(study), "over");
}

TEST_P(StudyTest, AValueThatWasEnqueuedBecomesOneOfTheRangeOrIsRefused) {
  Program program = searching(Search::Method::tpe, 99);
  program.params.clear();
  Study study = submit(std::move(program));
  const experiment::Parameter whole{
      .name = "n", .choices = {}, .min = 1, .max = 9, .integer = true};
  ASSERT_TRUE(study.enqueue({{"n", "2.0"}}));
  ASSERT_TRUE(study.enqueue({{"n", "2.5"}}));
  ASSERT_TRUE(study.enqueue({{"c", "null"}}, {.json = {{"c", "null"}}}));
  EXPECT_EQ(ask(study), "1");
  EXPECT_EQ(study.suggest("1", whole), "2");
  EXPECT_TRUE(tell(study, "1", 1));
  EXPECT_EQ(store_->find_task(study.record().id, "1")->params, (store::Values{{"n", "2"}}));
  EXPECT_EQ(ask(study), "2");
  EXPECT_EQ(study.suggest("2", whole).error().message,
            "this trial: n: '2.5' lies between the values of 1..9, int");
  EXPECT_EQ(experiment::values_json({{"c", "null"}}, study.program().types), R"({"c":null})");
  EXPECT_FALSE(study.suggest("2", {.name = "n", .choices = {"1", "2"}}));
}

TEST_P(StudyTest, ReportsOfAllDecideWhichEndsEarly) {
  Program program = searching(Search::Method::random, 9);
  program.early_stop = experiment::EarlyStop{.warmup = 2};
  Study one = submit(std::move(program)), other = open();
  EXPECT_EQ(ask(one), "1");
  for (const double f : {1.0, 1.0, 1.0}) EXPECT_EQ(one.report("1", {}, {{"f", f}}), std::nullopt);
  EXPECT_TRUE(tell(one, "1", 1));
  EXPECT_EQ(ask(other), "2");
  EXPECT_EQ(other.report("2", {}, {{"f", 9}}), std::nullopt) << "its first steps";
  EXPECT_EQ(other.report("2", {}, {{"f", 9}}), std::nullopt) << "each counts once";
  EXPECT_NE(other.report("2", {}, {{"f", 9}}).value(), std::nullopt);
  EXPECT_NE(other.report("2", {}, {{"f", 0}}).value(), std::nullopt) << "that is decided";
  ASSERT_TRUE(other.tell("2", {}, {.kind = TrialEnd::Kind::pruned, .reason = "pruned"}));
  const auto task = store_->find_task(one.record().id, "2").value();
  EXPECT_EQ(task.state, TaskState::done);
  EXPECT_EQ(task.cause, exec::Cause::stopped_early);
}

/// Whatever several do, in any order, with clocks that run and workers that vanish: each trial has
/// one end, and at the end all that were to be tried have one.
TEST_P(StudyTest, EveryTrialEndsOnceWhateverHappens) {
  const std::uint64_t seeds = GetParam() == store::Backend::postgres ? 2 : 40;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Rng chance(seed);
    Program program = searching(Search::Method::tpe, 12);
    program.name = fmt::format("r{}", seed);
    const auto run = Study::submit(*store_, env_, program, "/").value();
    const auto opened = [&] { return Study::open(*store_, env_, run.name).value(); };
    struct Worker {
      std::optional<Study> study;
      std::map<std::string, Token> holds{};
      bool over = false;
    };
    std::vector<Worker> workers;
    for (int i = 0; i < 4; ++i) workers.emplace_back().study.emplace(opened());
    std::map<std::string, int> told;
    for (int step = 0; step < 2000; ++step) {
      Worker& worker = workers[chance.below(workers.size())];
      const auto what = chance.below(20);
      if (what < 8) {
        const std::string label = ask(*worker.study);
        worker.over = label == "over";
        if (label != "over" && label != "later") worker.holds[label] = token(*worker.study, label);
      } else if (what < 16 && !worker.holds.empty()) {
        const auto [label, held] = *worker.holds.begin();
        worker.holds.erase(label);
        const auto status = tell(*worker.study, label, chance.uniform(), held);
        if (status)
          ++told[label];
        else
          EXPECT_EQ(status.error().kind, ErrorKind::stale) << status.error().message;
      } else if (what == 16) {
        env_.freeze(kLease / 3);
      } else if (what == 17) {
        ASSERT_TRUE(worker.study->renew());
      } else if (what == 18 && chance.below(10) == 0) {
        worker.study.emplace(opened());  // killed: what it held is lost
        worker.holds.clear();
      }
      if (std::ranges::all_of(workers, &Worker::over)) break;
    }
    const auto tasks = store_->tasks(run.id).value();
    ASSERT_EQ(tasks.size(), 12U);
    for (const auto& task : tasks) {
      EXPECT_TRUE(store::final(task.state)) << task.label;
      EXPECT_EQ(told[task.label], task.state == TaskState::done ? 1 : 0) << task.label;
    }
  }
}

}  // namespace
}  // namespace berth::run
