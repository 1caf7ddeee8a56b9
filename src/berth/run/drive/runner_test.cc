// A runner's phases, as its store has them; what is tried again, and what is left of a run.
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/run/state/layout.h"
#include "berth/testing/failing_store.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using testing::World;

class Phases : public ::testing::Test {
 protected:
  Phases() {
    inner_ = std::move(world_.context.store);
    auto failing = std::make_unique<store::FailingStore>(*inner_);
    failing_ = failing.get();
    world_.context.store = std::move(failing);
    world_.env.program = [](const os::SpawnSpec&) {
      return os::FakeProgram{.duration = std::chrono::seconds(1)};
    };
    world_.env.fault = [this](std::string_view call) -> std::optional<Error> {
      if (call != "wait") return std::nullopt;
      const auto runs = inner_->runs();
      const auto run = *inner_->find_run(runs->back().name);
      const std::string phase(store::name(run.phase));
      if (seen_.empty() || seen_.back() != phase) seen_.push_back(phase);
      if (run.phase == store::Phase::eval && run.alloc.empty()) ++eval_without_alloc_;
      if (arm_ && world_.env.now() >= *arm_) {
        failing_->arm(fault_);
        arm_.reset();
      }
      return std::nullopt;
    };
  }

  World world_;
  std::unique_ptr<store::Store> inner_;
  store::FailingStore* failing_ = nullptr;
  std::vector<std::string> seen_;
  int eval_without_alloc_ = 0;
  std::optional<Mono> arm_;
  store::StoreFault fault_;
};

TEST_F(Phases, AreRecordedOneAfterTheOther) {
  world_.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(1), .out = "::berth score=0.5\n"};
  };
  const auto run = world_.submit_trials(4, "goal: {metric: score}\n");
  EXPECT_EQ(run.phase, store::Phase::init);
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done);
  EXPECT_EQ(seen_, (std::vector<std::string>{"init", "eval"}));
  EXPECT_EQ(done->phase, store::Phase::done);
  EXPECT_EQ(done->alloc, "");
  EXPECT_EQ(done->result,
            R"({"done":4,"cached":0,"skipped":0,"failed":0,"best":{"task":"1","value":0.5}})");
  EXPECT_LE(eval_without_alloc_, 1);
}

TEST_F(Phases, WhatMayPassIsTriedAgainFromTheBeginning) {
  arm_ = Mono(std::chrono::milliseconds(1500));
  fault_ = {.times = 2, .error = {ErrorKind::full, "no space left"}};
  const auto run = world_.submit_trials(6);
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->state, store::RunState::done);
  EXPECT_EQ(done->counts, (store::Counts{.done = 6}));
  EXPECT_EQ(done->epoch, 2) << "a try takes the run over as a resume does";
  EXPECT_NE(done->last_try, std::nullopt);
  EXPECT_EQ(done->tries, 0);
  EXPECT_EQ(std::ranges::count_if(world_.observer.notes,
                                  [](const auto& note) {
                                    return note.starts_with("no space left; trying again in ");
                                  }),
            1);
  EXPECT_EQ(world_.env.descriptors(), 0U);
}

TEST_F(Phases, NotForEver) {
  arm_ = Mono(std::chrono::milliseconds(1500));
  fault_ = {.times = 1 << 20, .error = {ErrorKind::full, "no space left"}};
  const auto run = world_.submit_trials(6);
  const auto failed = drive(world_.context, run.name, world_.observer);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::full);
  EXPECT_EQ(std::ranges::count_if(
                world_.observer.notes,
                [](const auto& note) { return note.find("trying again") != std::string::npos; }),
            5);
  failing_->disarm();
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 6}));
}

TEST_F(Phases, NotForEverWhereTasksEndAndTheirLogIsFull) {
  world_.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(1), .out = "told\n"};
  };
  int left = 100;
  world_.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "write_all" || left == 0) return std::nullopt;
    --left;
    return Error{ErrorKind::full, "no space left"};
  };
  const auto run = world_.submit_trials(6);
  const auto failed = drive(world_.context, run.name, world_.observer);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::full);
  EXPECT_GT(left, 0) << "it was tried five times again, not until there was room";
  left = 0;
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 6}));
}

TEST_F(Phases, WhatNoTryCanMendEndsAtOnce) {
  arm_ = Mono(std::chrono::milliseconds(1500));
  fault_ = {.times = 1 << 20, .error = {ErrorKind::corrupt, "damaged"}};
  const auto run = world_.submit_trials(6);
  const auto failed = drive(world_.context, run.name, world_.observer);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::corrupt);
  EXPECT_TRUE(world_.observer.notes.empty());
}

TEST_F(Phases, WhatWasGivenBackTakesNoRetry) {
  world_.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(1), .exit_code = 1};
  };
  const auto run = world_.submit_trials(1, "retries: 2\n");
  for (const Token token : {Token{1}, Token{2}}) {
    store::AttemptEnded end;
    end.task = {1};
    end.token = token;
    end.at = world_.env.wall();
    end.next = store::TaskState::waiting;
    end.cause = exec::Cause::given_back;
    const std::vector<store::Change> changes{
        store::AttemptStarted{{1}, token, world_.env.wall(), "{}", "host"}, end};
    ASSERT_TRUE(inner_->apply(run.id, changes));
  }
  ASSERT_TRUE(drive(world_.context, run.name, world_.observer));
  EXPECT_EQ(inner_->attempts(run.id, TaskNumber{1})->size(), 2U + 3U);
}

TEST_F(Phases, WhatWasHeldIsAddedUp) {
  const auto run = world_.submit_trials(6, "resources: {cpu: 2}\n");
  ASSERT_TRUE(drive(world_.context, run.name, world_.observer));
  const auto usage = inner_->usage(run.id);
  ASSERT_EQ(usage->size(), 1U);
  EXPECT_EQ(usage->front().resources, R"({"cpu":2})");
  EXPECT_EQ(usage->front().held, std::chrono::seconds(6));
}

TEST_F(Phases, OnlyWhatFailedOrEverythingAnew) {
  bool mended = false;
  world_.env.program = [&](const os::SpawnSpec& spec) {
    return os::FakeProgram{.duration = std::chrono::seconds(1),
                           .exit_code = !mended && spec.argv.at(1) == "2" ? 1 : 0};
  };
  const auto run = world_.submit_trials(8, "on_failure: stop\nparallel: 1\n");
  const auto halted = drive(world_.context, run.name, world_.observer);
  ASSERT_EQ(halted->counts, (store::Counts{.waiting = 6, .done = 1, .failed = 1}));
  mended = true;
  const auto failed = reopen(world_.context, run.name, false);
  ASSERT_EQ(failed, (std::vector<TaskNumber>{{2}}));
  const auto only = drive(world_.context, run.name, world_.observer, *failed);
  ASSERT_TRUE(only) << only.error().message;
  EXPECT_EQ(only->state, store::RunState::stopped);
  EXPECT_EQ(only->counts, (store::Counts{.done = 2, .stopped = 6}));
  EXPECT_EQ(drive(world_.context, run.name, world_.observer)->counts, (store::Counts{.done = 8}));
  EXPECT_EQ(reopen(world_.context, run.name, true)->size(), 8U);
  const auto anew = drive(world_.context, run.name, world_.observer);
  EXPECT_EQ(anew->counts, (store::Counts{.done = 8}));
  const auto tasks = inner_->tasks(run.id);
  EXPECT_EQ(tasks->at(1).attempts, 3);
  EXPECT_EQ(tasks->at(7).attempts, 2);
}

/// Another process removes the run in the moment between the first look at it and the lock.
TEST_F(Phases, ARunThatIsRemovedMeanwhileIsNotDriven) {
  int started = 0;
  world_.env.program = [&](const os::SpawnSpec&) {
    ++started;
    return os::FakeProgram{};
  };
  std::optional<RunId> doomed;
  world_.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "lock" && doomed) {
      EXPECT_TRUE(inner_->remove(*std::exchange(doomed, std::nullopt)));
    }
    return std::nullopt;
  };
  using Call = std::function<Status(const std::string&)>;
  const std::vector<Call> calls = {
      [&](const auto& name) -> Status {
        BERTH_TRY(drive(world_.context, name, world_.observer));
        return {};
      },
      [&](const auto& name) -> Status {
        BERTH_TRY(reopen(world_.context, name, true));
        return {};
      },
      [&](const auto& name) { return end_what_was_left(world_.context, name); },
      [&](const auto& name) { return remove(world_.context, name, IfLiving::end); },
  };
  for (const auto& call : calls) {
    const auto run = world_.submit_trials(3);
    doomed = run.id;
    const auto status = call(run.name);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::not_found) << status.error().message;
    EXPECT_EQ(started, 0);
    EXPECT_FALSE(world_.env.status(run_directory(world_.context, run.name)));
  }
}

/// Another process drives the run to its end in that moment.
TEST_F(Phases, ARunThatEndsMeanwhileIsTakenAsItIsNow) {
  const auto run = world_.submit_trials(3);
  bool meanwhile = false;
  world_.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "lock" && !std::exchange(meanwhile, true)) {
      EXPECT_TRUE(drive(world_.context, run.name, world_.observer));
    }
    return std::nullopt;
  };
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 3}));
  for (int task = 1; task <= 3; ++task)
    EXPECT_EQ(inner_->attempts(run.id, TaskNumber{task})->size(), 1U);
}

}  // namespace
}  // namespace berth::run
