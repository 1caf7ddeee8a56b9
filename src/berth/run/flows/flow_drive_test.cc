// Whole runs of flows on a fake world: what takes long is done beside the loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "berth/agent/journal.h"
#include "berth/base/units.h"
#include "berth/run/drive/drive.h"
#include "berth/run/drive/runner.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/flows/flow_tasks.h"
#include "berth/run/state/layout.h"
#include "berth/testing/fake_env.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using testing::Quiet;

constexpr std::size_t kLarge = 6 << 20;

/// Each program is "write NAME SIZE": it writes so many bytes to ./NAME in a second.
class FlowDrive : public ::testing::Test {
 protected:
  FlowDrive() {
    env_.put("/proc/meminfo", "MemTotal: 16000000 kB\n");
    env_.put("/proc/self/cgroup", "");
    env_.put("/proc/self/mountinfo", "");
    for (const auto* path : {"/state", "/work", "/bin"}) (void)env_.make_directory(path, 0700);
    env_.put("/bin/write", "");
    env_.variables["PATH"] = "/bin";
    context_.env = &env_;
    context_.state_directory = "/state";
    context_.store = store::memory_store();
    context_.ledger_directory = "/ledger";
    context_.capacity.disk_directory = "/state";
    env_.program = [this](const os::SpawnSpec& spec) {
      const auto size = parse_integer(spec.argv.at(2)).value();
      env_.put(spec.directory + "/" + spec.argv.at(1),
               std::string(static_cast<std::size_t>(size), 'x'));
      started_.emplace_back(spec.argv.at(1), env_.now());
      return os::FakeProgram{.duration = std::chrono::seconds(1)};
    };
  }
  store::RunRecord submit_flow(const std::string& steps) {
    FlowProgram program;
    program.text = "name: f\nsteps:\n" + steps;
    program.file = "f.yaml";
    program.name = "f";
    const auto checked = check_flow(context_, program, "/work");
    EXPECT_TRUE(checked) << checked.error().message;
    const auto run = submit(context_, program, "/work");
    EXPECT_TRUE(run) << run.error().message;
    return *run;
  }
  static std::string step(const std::string& name, std::size_t size) {
    return fmt::format("  {}: {{run: write {} {}, out: {{o: {}}}}}\n", name, name, size, name);
  }
  store::RunRecord drive_run(const store::RunRecord& run) {
    const auto done = drive(context_, run.name, observer_);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_EQ(env_.descriptors(), 0U);
    return *done;
  }
  /// Something is being made beside a place.
  bool any_beside(const std::string& folder) {
    const auto fault = std::exchange(env_.fault, nullptr);
    const auto names = env_.list(folder).value();
    env_.fault = fault;
    return std::ranges::any_of(names, [](const auto& each) { return each.ends_with(".berth"); });
  }
  /// When the last of these began.
  Mono last_start() const { return started_.back().second; }

  os::FakeEnv env_;
  Context context_;
  Quiet observer_;
  std::vector<std::pair<std::string, Mono>> started_;
};

TEST_F(FlowDrive, OthersStartAndEndWhileALargeOutputIsTakenIn) {
  env_.background_takes = std::chrono::minutes(1);
  std::string steps = step("large", kLarge);
  for (int i = 0; i < 10; ++i) steps += step(fmt::format("small{}", i), 10);
  const auto done = drive_run(submit_flow(steps));
  EXPECT_EQ(done.counts, (store::Counts{.done = 11}));
  EXPECT_LT(last_start() - Mono{}, std::chrono::seconds(20)) << "one core was left to them";
  EXPECT_GE(env_.now() - Mono{}, std::chrono::minutes(1));
  EXPECT_EQ(observer_.ends.back().label, "large");
  EXPECT_EQ(env_.status("/work/large")->size, static_cast<std::int64_t>(kLarge));
}

/// It may hang there, and others' runs would wait for the store.
TEST_F(FlowDrive, TheStoreIsNotLockedWhileResultsGoToTheirPlaces) {
  std::string steps;
  for (int i = 0; i < 5; ++i) steps += step(fmt::format("s{}", i), 10);
  drive_run(submit_flow(steps));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(env_.remove_file(fmt::format("/work/s{}", i)));
  const auto run = submit_flow(steps);
  int copies = 0, locked = 0;
  env_.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "copy_file") return std::nullopt;
    const auto fault = std::exchange(env_.fault, nullptr);
    ++copies;
    locked += env_.lock("/state/cache/lock", false) ? 0 : 1;
    env_.fault = fault;
    return std::nullopt;
  };
  EXPECT_EQ(drive_run(run).counts, (store::Counts{.cached = 5}));
  EXPECT_EQ(copies, 5);
  EXPECT_EQ(locked, 0);
}

TEST_F(FlowDrive, AnErrorOfTheDiskIsNoFailureOfTheTask) {
  const auto run = submit_flow(step("small", 10));
  env_.fault = [this](std::string_view call) -> std::optional<Error> {
    const bool has_ended =
        started_.size() == 1 && env_.now() >= last_start() + std::chrono::seconds(1);
    if (call == "status" && has_ended) return Error{ErrorKind::io, "no"};
    return std::nullopt;
  };
  EXPECT_EQ(drive_run(run).counts, (store::Counts{.done = 1}));
  EXPECT_EQ(started_.size(), 2U);
}

TEST_F(FlowDrive, OthersStartAndEndWhileALargeInputIsRead) {
  env_.background_takes = std::chrono::minutes(1);
  env_.put("/work/data", std::string(kLarge, 'x'));
  std::string steps;
  for (int i = 0; i < 3; ++i)
    steps += fmt::format("  big{}: {{run: write big{} 5, in: {{d: data}}, out: {{o: big{}}}}}\n", i,
                         i, i);
  for (int i = 0; i < 10; ++i) steps += step(fmt::format("small{}", i), 10);
  const auto done = drive_run(submit_flow(steps));
  EXPECT_EQ(done.counts, (store::Counts{.done = 13}));
  ASSERT_EQ(started_.size(), 13U);
  EXPECT_LT(started_[9].second - Mono{}, std::chrono::seconds(20));
  for (std::size_t i = 10; i < 13; ++i) EXPECT_EQ(started_[i].first, fmt::format("big{}", i - 10));
  EXPECT_GE(started_[10].second - Mono{}, std::chrono::minutes(1));
  EXPECT_LT(started_[10].second - Mono{}, std::chrono::minutes(2)) << "it is read once";
}

TEST_F(FlowDrive, WhatIsCachedIsBroughtBesideTheLoop) {
  env_.put("/work/data", std::string(kLarge, 'x'));
  const std::string steps =
      step("large", kLarge) + "  next: {run: write next 5, in: {l: large.o}, out: {o: next}}\n";
  EXPECT_EQ(drive_run(submit_flow(steps)).counts, (store::Counts{.done = 2}));
  (void)env_.remove_file("/work/large");
  const Mono before = env_.now();
  env_.background_takes = std::chrono::minutes(1);
  EXPECT_EQ(drive_run(submit_flow(steps)).counts, (store::Counts{.cached = 2}));
  EXPECT_GE(env_.now() - before, std::chrono::minutes(1));
  EXPECT_TRUE(env_.find("/work/large"));
  EXPECT_EQ(started_.size(), 2U);
}

TEST_F(FlowDrive, AStopDropsWhatIsReadAndWaitsForWhatIsTakenIn) {
  env_.background_takes = std::chrono::minutes(1);
  env_.put("/work/data", std::string(kLarge, 'x'));
  const auto run = submit_flow(step("large", kLarge) +
                               "  next: {run: write next 5, in: {d: data}, out: {o: next}}\n");
  env_.stop_at = Mono(std::chrono::seconds(3));
  auto done = drive_run(run);
  EXPECT_EQ(done.state, store::RunState::stopped);
  EXPECT_EQ(done.counts, (store::Counts{.done = 1, .stopped = 1}));
  env_.stops = 0;
  done = drive_run(run);
  EXPECT_EQ(done.counts, (store::Counts{.done = 2}));
  EXPECT_EQ(started_.size(), 2U);
}

TEST_F(FlowDrive, AStopLeavesToAResumeWhatIsLongOnItsWayToItsPlace) {
  env_.background_takes = std::chrono::minutes(1);
  const auto run = submit_flow(step("large", kLarge) + step("small", 5));
  const Duration in_the_store = std::chrono::seconds(65);
  env_.stop_at = Mono(in_the_store);
  auto done = drive_run(run);
  EXPECT_EQ(done.state, store::RunState::stopped);
  EXPECT_EQ(done.counts, (store::Counts{.done = 2}));
  EXPECT_LT(env_.now() - Mono{}, in_the_store + std::chrono::seconds(15));
  EXPECT_TRUE(std::ranges::any_of(observer_.notes, [](const auto& note) {
    return note.contains("to deliver /work/large; a resume will deliver it");
  }));
  (void)env_.remove_file("/work/large");  // what was done at once in this world
  env_.stops = 0;
  done = drive_run(run);
  EXPECT_EQ(done.state, store::RunState::done);
  EXPECT_EQ(done.counts, (store::Counts{.done = 2}));
  EXPECT_EQ(env_.status("/work/large")->size, static_cast<std::int64_t>(kLarge));
  EXPECT_EQ(started_.size(), 2U) << "neither ran again";
}

/// By a seed of ./dev simulate: what was done ran again.
TEST_F(FlowDrive, AStopLeavesToAResumeWhatOnlyAJournalTells) {
  const auto run = submit_flow(
      step("large", kLarge) + "  small: {run: write small 5, in: {d: large.o}, out: {o: small}}\n");
  EXPECT_EQ(drive_run(run).counts, (store::Counts{.done = 2}));
  // A runner has started small once more and died, and so has its agent, when that had ended.
  const Token token{(std::int64_t{1} << 32) + 9};
  const std::string directory = run_directory(context_, run.name);
  ASSERT_TRUE(context_.store->apply(
      run.id, {{store::RunMoved{store::RunState::running, Wall{}, {}}, store::TaskReopened{{2}},
                store::AttemptStarted{{2}, token, Wall{}, "", "here"}}}));
  const std::string outputs = task_directory(directory, {2}, token);
  const std::string agent = agents_directory(directory) + "/1";
  for (const auto& each : {outputs, agent}) ASSERT_TRUE(env_.make_directory(each, 0700));
  env_.put(outputs + "/small", "again");
  std::optional<agent::Journal> journal(std::in_place, env_, agent);
  journal->append(exec::Ended{.task = {2}, .token = token, .exit_code = 0, .detail = {}});
  journal->write();
  journal.reset();
  // Before small is taken up again what it takes in is to be brought to its place.
  (void)env_.remove_file("/work/large");
  env_.background_takes = std::chrono::minutes(1);
  env_.stops = 1;
  EXPECT_EQ(drive_run(run).state, store::RunState::stopped);
  env_.stops = 0;
  const auto done = drive_run(run);
  EXPECT_EQ(done.counts, (store::Counts{.done = 2}));
  EXPECT_EQ(context_.store->tasks(run.id)->back().token, token);
  EXPECT_EQ(env_.read_file("/work/small", 100).value(), "again");
  EXPECT_EQ(started_.size(), 2U) << "it ran again";
}

/// An agent whose one attempt had ended before this runner came.
class HasEnded final : public agent::AgentClient {
 public:
  explicit HasEnded(exec::Ended ended) {
    messages_.emplace_back(std::move(ended));
    welcome_.block.resources.set(Known::cpu, 1000);
    welcome_.block.cores = {{0, 0, 1000}};
  }
  void send(const exec::ToWorker&) override {}
  void set_reading(bool) override {}
  void take_messages(std::vector<exec::FromWorker>& messages) override {
    std::ranges::move(std::exchange(messages_, {}), std::back_inserter(messages));
  }
  bool idle() const override { return true; }
  bool ready() const override { return true; }
  const agent::Welcome& agent() const override { return welcome_; }
  void lose(Error) override {}

 private:
  std::vector<exec::FromWorker> messages_;
  agent::Welcome welcome_;
};

/// The run waited for ever for a task before it, which had failed.
TEST_F(FlowDrive, ATaskThatEndedFailsWhenWhatItReadsDoesNotComeBack) {
  const auto run = submit_flow(
      step("large", 9) + "  small: {run: write small 5, in: {d: large.o}, out: {o: small}}\n");
  EXPECT_EQ(drive_run(run).counts, (store::Counts{.done = 2}));
  const Token token{(std::int64_t{1} << 32) + 9};
  const std::string directory = run_directory(context_, run.name);
  ASSERT_TRUE(context_.store->apply(
      run.id, {{store::RunMoved{store::RunState::running, Wall{}, {}}, store::TaskReopened{{2}},
                store::AttemptStarted{{2}, token, Wall{}, "", "far"}}}));
  ASSERT_TRUE(env_.make_directory(task_directory(directory, {2}, token), 0700));
  env_.put(task_directory(directory, {2}, token) + "/small", "again");
  (void)env_.remove_file("/work/large");
  env_.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "rename" && env_.find("/work/large") == nullptr && any_beside("/work"))
      return Error{ErrorKind::denied, "it may not be written"};
    return std::nullopt;
  };
  RecoveredAgents found;
  found.tokens = {token};
  found.alive.push_back({.directory = "",
                         .machine = "far",
                         .client = std::make_unique<HasEnded>(exec::Ended{
                             .task = {2}, .token = token, .exit_code = 0, .detail = {}}),
                         .attempts = {{.task = {2}, .token = token}}});
  Drive loop(context_, context_.store->runs()->back(), *flow_tasks(context_, run), observer_, {},
             *machine::Ledger::open(env_, context_.ledger_directory),
             *LogWriter::open(env_, directory), std::move(found));
  const auto begun = loop.begin(0, {});
  ASSERT_TRUE(begun) << begun.error().message;
  for (int turns = 0; !loop.over(); ++turns) {
    ASSERT_LT(turns, 1000) << "it waits for ever";
    ASSERT_TRUE(loop.turn());
  }
  EXPECT_EQ(loop.settle()->counts, (store::Counts{.failed = 2}));
  EXPECT_EQ(env_.read_file("/work/small", 100).value(), "xxxxx") << "of the first time";
}

/// One task, of which the first attempt was given up while its output was on its way to its place.
class FlowAttempts : public FlowDrive {
 protected:
  FlowAttempts() {
    task_.number = {1};
    task_.label = "large";
  }
  void take_up() {
    tasks_ = flow_tasks(context_, submit_flow(step("large", kLarge))).value();
    ASSERT_TRUE(tasks_->take_over({}));
    ASSERT_EQ(tasks_->next().value().start, std::vector{task_.number});
  }
  void end_one(std::int64_t token, std::size_t size, char byte) {
    const auto launch = tasks_->launch(task_, {token}, 1);
    ASSERT_TRUE(launch) << launch.error().message;
    env_.put(launch->directory + "/large", std::string(size, byte));
    std::vector<store::Change> changes;
    EXPECT_FALSE(tasks_->finish(task_, {token}, changes, true).value()) << token;
  }
  std::vector<Finished> turn_after(Duration time) {
    env_.freeze(time);
    return tasks_->turn();
  }
  char placed() { return env_.find("/work/large")->front(); }
  void give_up_one_and_end_another(std::size_t size) {
    (void)env_.remove_file("/work/large");
    take_up();
    env_.background_takes = kHangs;
    end_one(1, kLarge, '1');
    EXPECT_TRUE(turn_after(kHangs).empty());
    ASSERT_EQ(placed(), '1');
    env_.background_takes = std::chrono::seconds(1);
    end_one(2, size, '2');
    EXPECT_TRUE(turn_after(std::chrono::seconds(1)).empty());
  }
  static constexpr Duration kHangs = std::chrono::minutes(1);
  store::TaskRecord task_;
  std::unique_ptr<Workload> tasks_;
};

TEST_F(FlowAttempts, TheLastIsBroughtBehindOneThatWasGivenUp) {
  for (const std::size_t size : {kLarge, std::size_t{5}}) {
    give_up_one_and_end_another(size);
    EXPECT_EQ(placed(), '1') << "else the first might come last";
    EXPECT_TRUE(turn_after(kHangs).empty());
    const auto finished = turn_after(kHangs);
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(finished[0].token, Token{2});
    EXPECT_TRUE(finished[0].status);
    EXPECT_EQ(placed(), '2');
    EXPECT_FALSE(tasks_->busy());
  }
}

TEST_F(FlowAttempts, OneThatWasGivenUpIsNotBroughtOnceItIsKnown) {
  take_up();
  env_.background_takes = kHangs;
  end_one(1, kLarge, '1');
  ASSERT_TRUE(tasks_->launch(task_, {2}, 1));
  EXPECT_TRUE(turn_after(kHangs).empty());
  EXPECT_FALSE(env_.find("/work/large"));
  EXPECT_FALSE(tasks_->busy());
}

TEST_F(FlowAttempts, AStopLeavesTheLastToAResume) {
  give_up_one_and_end_another(kLarge);
  const auto left = tasks_->leave(env_.now());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].token, Token{2});
  EXPECT_FALSE(tasks_->complete());
}

TEST_F(FlowDrive, ALargeInputThatIsMissingFailsWhoWantsIt) {
  env_.put("/work/data", std::string(kLarge, 'x'));
  const auto run =
      submit_flow(step("a", 5) + "  next: {run: write next 5, in: {d: data}, out: {o: next}}\n");
  env_.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "aside") (void)env_.remove_file("/work/data");
    return std::nullopt;
  };
  const auto done = drive_run(run);
  EXPECT_EQ(done.counts, (store::Counts{.done = 1, .failed = 1}));
  const auto end = std::ranges::find(observer_.ends, "next", &TaskEnd::label);
  ASSERT_NE(end, observer_.ends.end());
  EXPECT_NE(end->detail.find("/work/data"), std::string::npos) << end->detail;
}

// Nothing runs that could make room: the run tries again with pauses, and then says how it is.
TEST_F(FlowDrive, WhatIsShortWhileItLooksForWhatIsNextIsTriedAgain) {
  env_.put("/work/data", "x");
  const auto run = submit_flow("  a: {run: write a 5, in: {d: data}, out: {o: a}}\n");
  Mono until = env_.now() + std::chrono::seconds(1);
  env_.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "copy_file" || env_.now() >= until) return std::nullopt;
    return Error{ErrorKind::full, "no space left"};
  };
  EXPECT_EQ(drive_run(run).counts, (store::Counts{.done = 1}));
  ASSERT_FALSE(observer_.notes.empty());
  EXPECT_NE(observer_.notes[0].find("no space left; trying again in"), std::string::npos);

  env_.put("/work/data", "y");
  until = env_.now() + std::chrono::hours(1);
  const auto other = submit_flow("  b: {run: write b 5, in: {d: data}, out: {o: b}}\n");
  EXPECT_EQ(drive(context_, other.name, observer_).error().kind, ErrorKind::full);
  until = env_.now();
  EXPECT_EQ(drive_run(other).counts, (store::Counts{.done = 1})) << "and can be resumed";
}

TEST_F(FlowDrive, NoRoomAtAPlaceFailsTheTaskAndKeepsItsResult) {
  for (const std::size_t size : {std::size_t{10}, kLarge}) {
    observer_.ends.clear();
    const auto name = fmt::format("o{}", size);
    const auto run = submit_flow(step(name, size));
    env_.fault = [&](std::string_view call) -> std::optional<Error> {
      // The copy beside its place: the store's own is of another name.
      if (call == "rename" && env_.find("/work/" + name) == nullptr && any_beside("/work"))
        return Error{ErrorKind::full, "no space left"};
      return std::nullopt;
    };
    auto done = drive_run(run);
    env_.fault = nullptr;
    EXPECT_EQ(done.counts, (store::Counts{.failed = 1}));
    EXPECT_EQ(observer_.ends.at(0).detail,
              fmt::format("out.o: no space left; its output is kept in the cache"));
    const auto spawned = env_.spawned();
    done = drive_run(submit_flow(step(name, size)));
    EXPECT_EQ(done.counts, (store::Counts{.cached = 1}));
    EXPECT_EQ(env_.spawned(), spawned);
  }
}

// An attempt that an earlier runner started has failed here: what it takes in is not known yet.
TEST_F(FlowDrive, ASecondTryTakesInWhatItsPlacesAreForThoughTheFirstFoundNoRoom) {
  for (const auto* name : {"a", "b"}) env_.put(std::string("/work/") + name, name);
  const auto run = submit_flow("  s: {run: write s 5, in: {a: a, b: b}, out: {o: s}}\n");
  FlowTasks tasks(context_, run, *flow_program(run.spec_json), *open_cache(context_));
  const Token first{1}, second{2}, third{3};
  store::TaskRecord running = context_.store->tasks(run.id)->at(0);
  running.state = store::TaskState::running;
  running.token = first;
  ASSERT_TRUE(tasks.take_over(std::vector{running}));
  ASSERT_TRUE(tasks.next());
  env_.fault = [copies = 0](std::string_view call) mutable -> std::optional<Error> {
    if (call != "copy_file" || ++copies != 2) return std::nullopt;
    return Error{ErrorKind::full, "no space left"};
  };
  EXPECT_EQ(tasks.launch(running, second, 1).error().kind, ErrorKind::full);
  env_.fault = nullptr;
  const auto launch = tasks.launch(running, third, 1);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(*env_.find(launch->directory + "/a"), "a");
  EXPECT_EQ(*env_.find(launch->directory + "/b"), "b");
}

// 2,000 tasks of 0.1 s on 64 places: the ideal is 32 waves of one after the other.
TEST_F(FlowDrive, AWideFlowKeepsSixtyFourPlacesBusy) {
  env_.cores.resize(64);
  std::iota(env_.cores.begin(), env_.cores.end(), 0);
  env_.put("/proc/cpuinfo", "");
  env_.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::milliseconds(100)};
  };
  std::string values;
  for (int i = 0; i < 2000; ++i) values += fmt::format("{}{}", i == 0 ? "" : ", ", i);
  const auto run =
      submit_flow(fmt::format("  wide: {{foreach: {{i: [{}]}}, run: \"write {{i}}\"}}\n", values));
  const Mono began = env_.now();
  EXPECT_EQ(drive_run(run).counts, (store::Counts{.done = 2000}));
  EXPECT_EQ(env_.most_alive(), 64U);
  const Duration ideal = std::chrono::milliseconds(3200);
  EXPECT_LE(env_.now() - began, ideal * 105 / 100);
}

}  // namespace
}  // namespace berth::run
