// What a runner does about agents that an earlier one left, on a fake world.
#include "berth/run/drive/recovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "berth/agent/journal.h"
#include "berth/run/drive/drive.h"
#include "berth/testing/failing_store.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

/// An agent elsewhere of which nothing is known, and which is called as long as this exists.
class NeverAnswers final : public agent::AgentClient {
 public:
  explicit NeverAnswers(bool& is_called) : is_called_(is_called) { is_called_ = true; }
  ~NeverAnswers() override { is_called_ = false; }
  void send(const exec::ToWorker&) override {}
  void set_reading(bool) override {}
  void take_messages(std::vector<exec::FromWorker>&) override {}
  bool idle() const override { return true; }
  bool ready() const override { return false; }
  const agent::Welcome& agent() const override { return welcome_; }
  void lose(Error) override {}

 private:
  bool& is_called_;
  agent::Welcome welcome_;
};

/// An agent that runs an attempt which no store knows, and takes a second to end it.
class StillEnds final : public agent::AgentClient {
 public:
  StillEnds(os::Env& env, std::vector<std::string>& events) : env_(env), events_(events) {
    welcome_.block.resources.set(Known::cpu, 1000);
    welcome_.block.cores = {{0, 0, 1000}};
  }
  void send(const exec::ToWorker& message) override {
    if (const auto* cancel = std::get_if<exec::Cancel>(&message)) {
      events_.emplace_back("cancel");
      end({.task = {1},
           .token = cancel->token,
           .cause = exec::Cause::stopped,
           .exit_code = {},
           .detail = {}});
    } else if (const auto* launch = std::get_if<exec::Launch>(&message)) {
      events_.emplace_back("launch");
      end({.task = launch->task, .token = launch->token, .exit_code = 0, .detail = {}});
    }
  }
  void set_reading(bool) override {}
  void take_messages(std::vector<exec::FromWorker>& messages) override {
    std::ranges::move(std::exchange(told, {}), std::back_inserter(messages));
    if (!ending_ || ends_.at()) return;
    events_.emplace_back("end");
    messages.emplace_back(*std::exchange(ending_, std::nullopt));
  }
  bool idle() const override { return !ending_; }
  bool ready() const override { return true; }
  const agent::Welcome& agent() const override { return welcome_; }
  void lose(Error) override {}
  void end(exec::Ended ended) {
    ending_ = std::move(ended);
    ends_.set(env_.now() + std::chrono::seconds(1));
  }
  std::vector<exec::FromWorker> told;  // first

 private:
  os::Env& env_;
  std::vector<std::string>& events_;
  std::optional<exec::Ended> ending_;
  agent::Welcome welcome_;
  os::Timer ends_{env_.loop(), [] {}};  // the turn of the loop is what wakes
};

/// An agent that has handed out the first messages of its journal, and is gone.
class IsGone final : public agent::AgentClient {
 public:
  explicit IsGone(std::vector<exec::FromWorker> handed_out) : messages_(std::move(handed_out)) {
    taken_ = std::ssize(messages_);
    welcome_.block.resources.set(Known::cpu, 1000);
    welcome_.block.cores = {{0, 0, 1000}};
  }
  void send(const exec::ToWorker&) override {}
  void set_reading(bool) override {}
  void take_messages(std::vector<exec::FromWorker>& messages) override {
    std::ranges::move(std::exchange(messages_, {}), std::back_inserter(messages));
  }
  std::int64_t last_taken() const override { return taken_; }
  bool idle() const override { return false; }
  std::optional<Error> lost() const override { return Error{ErrorKind::not_found, "killed"}; }
  bool ready() const override { return true; }
  const agent::Welcome& agent() const override { return welcome_; }
  void lose(Error) override {}

 private:
  std::vector<exec::FromWorker> messages_;
  std::int64_t taken_;
  agent::Welcome welcome_;
};

/// Drives a new run with one trial to its end, after agents were found. Their attempt is recorded,
/// where it has a token, and so is what `recorded` says.
std::int64_t done_after(testing::World& world, RecoveredAgents found,
                        const std::function<void()>& begun,
                        const std::vector<store::Change>& recorded = {}) {
  const auto record = world.submit_trials(1);
  for (const Token token : found.tokens)
    EXPECT_TRUE(world.context.store->apply(
        record.id, {{store::AttemptStarted{{1}, token, Wall{}, "", "far"}}}));
  if (!recorded.empty()) {
    EXPECT_TRUE(world.context.store->apply(record.id, recorded));
  }
  const std::string directory = run_directory(world.context, record.name);
  EXPECT_TRUE(world.env.make_directory(directory, 0700));
  Drive loop(world.context, record,
             trials(world.context, record, *experiment::from_json_text(record.spec_json)),
             world.observer, {}, *machine::Ledger::open(world.env, world.context.ledger_directory),
             *LogWriter::open(world.env, directory), std::move(found));
  if (!loop.begin(0, {})) return 0;
  begun();
  while (!loop.over())
    if (!loop.turn()) return 0;
  return loop.settle()->counts.done;
}

/// By a seed of ./dev simulate: the task ran twice at once.
TEST(Recovery, ATaskWaitsForTheEndOfAnAttemptThatNobodyRecorded) {
  testing::World world;
  std::vector<std::string> events;
  RecoveredAgents found;
  found.alive.push_back({.directory = "",
                         .machine = "far",
                         .client = std::make_unique<StillEnds>(world.env, events),
                         .attempts = {{.task = {1}, .token = {5}}}});
  EXPECT_EQ(done_after(world, std::move(found), [] {}), 1);
  EXPECT_EQ(events, (std::vector<std::string>{"cancel", "end", "launch", "end"}));
  EXPECT_EQ(world.env.spawned(), 0U) << "nor did it start on this machine meanwhile";
}

/// By a seed of ./dev simulate: an earlier runner had heard of the end of the recorded attempt and
/// started the task again, and was killed before anything of this was recorded.
TEST(Recovery, ATaskWaitsForWhatWasStartedAfterItsRecordedAttempt) {
  testing::World world;
  std::vector<std::string> events;
  auto agent = std::make_unique<StillEnds>(world.env, events);
  agent->told.emplace_back(exec::Ended{
      .task = {1}, .token = {5}, .cause = exec::Cause::stopped, .exit_code = {}, .detail = {}});
  RecoveredAgents found;
  found.tokens = {{5}};
  found.alive.push_back({.directory = "",
                         .machine = "far",
                         .client = std::move(agent),
                         .attempts = {{.task = {1}, .token = {5}}, {.task = {1}, .token = {9}}}});
  EXPECT_EQ(done_after(world, std::move(found), [] {}), 1) << "here, once the pause is over";
  EXPECT_EQ(events, (std::vector<std::string>{"cancel", "end"}));
}

/// By a seed of ./dev simulate: the run ended as stopped, and nobody had asked its runner to stop.
TEST(Recovery, WhatAnEarlierRunnerWasStoppingIsResumed) {
  testing::World world;
  std::vector<std::string> events;
  auto agent = std::make_unique<StillEnds>(world.env, events);
  agent->end(
      {.task = {1}, .token = {5}, .cause = exec::Cause::stopped, .exit_code = {}, .detail = {}});
  RecoveredAgents found;
  found.tokens = {{5}};
  found.alive.push_back({.directory = "",
                         .machine = "far",
                         .client = std::move(agent),
                         .attempts = {{.task = {1}, .token = {5}}}});
  EXPECT_EQ(done_after(world, std::move(found), [] {}), 1);
}

/// By a seed of ./dev simulate: the runner had died before it could acknowledge the end.
TEST(Recovery, OutputOfWhatIsRecordedAsEndedIsNotLoggedAgain) {
  testing::World world;
  std::vector<std::string> events;
  auto agent = std::make_unique<StillEnds>(world.env, events);
  agent->told.emplace_back(exec::Output{{1}, {5}, exec::Stream::out, "again"});
  RecoveredAgents found;
  found.tokens = {{5}};
  found.alive.push_back({.directory = "",
                         .machine = "far",
                         .client = std::move(agent),
                         .attempts = {{.task = {1}, .token = {5}}}});
  EXPECT_EQ(done_after(world, std::move(found), [] {},
                       {store::AttemptEnded{.task = {1},
                                            .token = {5},
                                            .at = {},
                                            .next = store::TaskState::waiting,
                                            .cause = exec::Cause::exit_code,
                                            .exit_code = 1,
                                            .detail = {}}}),
            1);
  const std::string* const log = world.env.find("/state/runs/t-1/output.log");
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(*log, "");
}

/// By a seed of ./dev simulate: what was done ran again.
TEST(Recovery, AJournalStaysUntilWhatItTellsIsDurable) {
  testing::World world;
  auto store = std::move(world.context.store);
  auto failing = std::make_unique<store::FailingStore>(*store);
  bool is_taken_over = false, fails = false;
  failing->before_call = [&]() -> std::optional<Error> {
    fails = fails || is_taken_over;
    return fails ? std::optional(Error{ErrorKind::full, "the disk is full"}) : std::nullopt;
  };
  failing->on_applied = [&](RunId, std::span<const store::Change> changes) {
    is_taken_over = std::holds_alternative<store::RunMoved>(changes.front());
  };
  world.context.store = std::move(failing);
  const std::string journal = "/state/agent/journal.1";
  world.env.put(journal, "");
  RecoveredAgents found;
  found.tokens = {{5}};
  found.dead_directories = {"/state/agent"};
  found.unacknowledged.emplace_back(
      exec::Ended{.task = {1}, .token = {5}, .exit_code = 0, .detail = {}});
  EXPECT_EQ(done_after(world, std::move(found), [] {}), 0);
  EXPECT_TRUE(fails);
  EXPECT_NE(world.env.find(journal), nullptr);
  world.context.store = std::move(store);
}

/// The end came by the journal, and what was printed just before it was missing in the log.
TEST(Recovery, WhatAKilledAgentHadNotSentYetIsInItsJournal) {
  testing::World world;
  const std::string directory = "/state/agent";
  ASSERT_TRUE(world.env.make_directory(directory, 0700));
  const std::vector<exec::FromWorker> all{
      exec::Output{{1}, {5}, exec::Stream::out, "sent, "},
      exec::Output{{1}, {5}, exec::Stream::out, "and kept"},
      exec::Ended{.task = {1}, .token = {5}, .exit_code = 0, .detail = {}}};
  agent::Journal journal(world.env, directory);
  for (const auto& message : all) journal.append(message);
  journal.write();
  RecoveredAgents found;
  found.tokens = {{5}};
  found.alive.push_back({.directory = directory,
                         .machine = "here",
                         .client = std::make_unique<IsGone>(std::vector{all.front()}),
                         .attempts = {{.task = {1}, .token = {5}}}});
  EXPECT_EQ(done_after(world, std::move(found), [] {}), 1);
  EXPECT_EQ(world.env.spawned(), 0U) << "it ran again";
  auto log = LogReader::open(world.env, "/state/runs/t-1");
  ASSERT_TRUE(log);
  std::string printed;
  EXPECT_TRUE(log->read({5}, [&](const LogFrame& frame) { printed += frame.bytes; }));
  EXPECT_EQ(printed, "sent, and kept");
}

TEST(Recovery, AnAgentThatNobodyWaitsForIsCalledNoLonger) {
  testing::World world;
  bool is_called = false;
  RecoveredAgents found;
  found.alive.push_back({.directory = "",
                         .machine = "far",
                         .client = std::make_unique<NeverAnswers>(is_called),
                         .attempts = {},
                         .silence = "far does not answer"});
  ASSERT_TRUE(is_called);
  EXPECT_EQ(done_after(world, std::move(found), [&] { EXPECT_FALSE(is_called); }), 1);
}

}  // namespace
}  // namespace berth::run
