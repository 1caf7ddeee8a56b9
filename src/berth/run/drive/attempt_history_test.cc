// The number of an attempt and what it asks for: from records alone, and in whole runs.
#include "berth/run/drive/attempt_history.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/run/flows/flow_run.h"
#include "berth/testing/fake_cluster.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using exec::Cause;
using testing::World;

constexpr std::int64_t kMega = 1'000'000;

Resources mem(std::int64_t bytes, std::int64_t cpu = 1000) {
  Resources resources;
  resources.set(Known::mem, bytes);
  resources.set(Known::cpu, cpu);
  return resources;
}

AttemptHistory after(std::initializer_list<std::pair<Cause, std::int64_t>> ends) {
  AttemptHistory history;
  for (const auto& [cause, had] : ends) history.add(cause, mem(had));
  return history;
}

TEST(AttemptHistory, CountsAsRetriesAreCounted) {
  EXPECT_EQ(after({}).attempt(), 1);
  EXPECT_EQ(
      after({{Cause::exit_code, 0}, {Cause::out_of_memory, 1}, {Cause::time_limit, 0}}).attempt(),
      4);
  for (const auto cause : {Cause::runner_lost, Cause::worker_lost, Cause::stopped,
                           Cause::superseded, Cause::given_back, Cause::short_of_means, Cause::ok})
    EXPECT_EQ(after({{cause, 0}}).attempt(), 1) << exec::kCauseNames.name(cause);
}

TEST(AttemptHistory, MemoryDoublesUpToWhatTheMachineHas) {
  const auto grows = [](std::int64_t first, const AttemptHistory& history, std::int64_t machine) {
    return grown(mem(first), mem(first), history, mem(machine, 4000)).get(Known::mem);
  };
  EXPECT_EQ(grows(100, after({{Cause::exit_code, 100}}), 1000), 100);
  EXPECT_EQ(grows(100, after({{Cause::out_of_memory, 100}}), 1000), 200);
  EXPECT_EQ(grows(100, after({{Cause::out_of_memory, 100}, {Cause::exit_code, 200}}), 1000), 200);
  EXPECT_EQ(grows(100, after({{Cause::out_of_memory, 100}, {Cause::out_of_memory, 200}}), 1000),
            400);
  EXPECT_EQ(grows(100, after({{Cause::out_of_memory, 800}}), 1000), 1000);
  EXPECT_EQ(grows(2000, after({{Cause::out_of_memory, 2000}}), 1000), 2000)
      << "never less than asked";
  EXPECT_EQ(grows(500, after({{Cause::out_of_memory, 100}}), 1000), 500) << "the file was edited";
  EXPECT_EQ(
      grown(mem(100), mem(100), after({{Cause::out_of_memory, INT64_MAX}}), {}).get(Known::mem),
      INT64_MAX);
  EXPECT_EQ(grown(mem(0), mem(0), after({{Cause::out_of_memory, 100}}), {}).get(Known::mem), 0)
      << "what has no limit gets none";
}

TEST(AttemptHistory, WhatTheFileAsksForIsBoundedToo) {
  const auto asked =
      grown(mem(900, 8000), mem(300, 2000), after({{Cause::exit_code, 300}}), mem(600, 4000));
  EXPECT_EQ(asked, mem(600, 4000));
}

TEST(AttemptHistory, IsToldInASentence) {
  const auto told = [](Cause cause, ResourceRequest before, ResourceRequest next) {
    return growth_text({.task = {1}, .token = {1}, .cause = cause, .exit_code = {}, .detail = {}},
                       before, next, 2);
  };
  EXPECT_EQ(
      told(Cause::out_of_memory, {.resources = mem(100 * kMega)}, {.resources = mem(200 * kMega)}),
      "ended out of memory at 100M; attempt 2 asks 200M");
  EXPECT_EQ(
      told(Cause::out_of_memory, {.resources = mem(100 * kMega)}, {.resources = mem(100 * kMega)}),
      "ended out of memory at 100M; the machine has no more");
  EXPECT_EQ(told(Cause::time_limit, {.resources = mem(1), .timeout = std::chrono::minutes(10)},
                 {.resources = mem(1, 2000), .timeout = std::chrono::minutes(20)}),
            "attempt 2 asks cpu 2, a time limit of 20m00s");
  EXPECT_EQ(told(Cause::exit_code, {.resources = mem(1)}, {.resources = mem(1)}), "");
}

/// The attempts of the task: what each asked for and how it ended.
std::vector<std::string> attempts_of(World& world, RunId run) {
  std::vector<std::string> texts;
  const auto attempts = world.context.store->attempts(run, {1}).value();
  for (const auto& each : attempts)
    texts.push_back(fmt::format("{} {}", each.resources,
                                exec::describe(each.cause, each.exit_code, each.signal)));
  return texts;
}

/// A runner was killed after these ends were recorded.
void leave(World& world, const store::RunRecord& run,
           std::initializer_list<std::pair<Cause, std::int64_t>> ends) {
  store::Store& store = *world.context.store;
  const auto taken = store.take_over(run.id, 1, 1, world.env.wall(), {}).value();
  std::vector<store::Change> changes;
  std::int64_t token = taken.epoch << 32;
  for (const auto& [cause, had] : ends) {
    ++token;
    changes.emplace_back(
        store::AttemptStarted{{1}, {token}, world.env.wall(), to_json(mem(had)), "here"});
    changes.emplace_back(store::AttemptEnded{.task = {1},
                                             .token = {token},
                                             .at = world.env.wall(),
                                             .next = store::TaskState::waiting,
                                             .cause = cause,
                                             .exit_code = {},
                                             .detail = {}});
  }
  ASSERT_TRUE(store.apply(run.id, changes));
}

TEST(AttemptsOfARun, GoOnFromTheRecordsAfterTheRunnerWasKilled) {
  World world;
  std::vector<std::string> numbers;
  world.env.program = [&](const os::SpawnSpec& spec) {
    for (const auto& [name, value] : spec.environment)
      if (name == "BERTH_ATTEMPT") numbers.push_back(value);
    return os::FakeProgram{.exit_code = numbers.size() < 2 ? 1 : 0};
  };
  const auto run = world.submit_trials(1, "retries: 3\nresources: {cpu: 1, mem: 100M}\n");
  leave(world, run, {{Cause::out_of_memory, 100 * kMega}, {Cause::runner_lost, 200 * kMega}});
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 1}));
  EXPECT_EQ(numbers, (std::vector<std::string>{"2", "3"}));
  EXPECT_EQ(
      attempts_of(world, run.id),
      (std::vector<std::string>{
          R"({"cpu":1,"mem":100000000} out of memory)", R"({"cpu":1,"mem":200000000} runner lost)",
          R"({"cpu":1,"mem":200000000} exit 1)", R"({"cpu":1,"mem":200000000} ok)"}));
}

/// This machine has 16 GB, and the one that helps 8 GiB.
TEST(AttemptsOfARun, AskForNoMoreThanAnyMachineHas) {
  World world;
  world.context.sources = [&](const auto&) -> Result<Sources> {
    auto pool = std::make_unique<cluster::FakePool>(world.env, cluster::FakePool::Options{});
    pool->add(cluster::block_of(6, 8LL << 30));
    Sources sources;
    sources.auxiliary.push_back({.name = "aux", .cluster = std::move(pool)});
    return sources;
  };
  const auto run = world.submit_trials(1, "retries: 3\nresources: {cpu: 1, mem: 10G}\n");
  leave(world, run, {{Cause::out_of_memory, 10'000 * kMega}});
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 1}));
  EXPECT_EQ(attempts_of(world, run.id).back(), R"({"cpu":1,"mem":16384000000} ok)");
  EXPECT_TRUE(std::ranges::any_of(world.observer.notes, [](const auto& note) {
    return note == "t-1/1: no machine has cpu 1, mem 18.6 GiB: it asks for cpu 1, mem 15.3 GiB";
  }));
}

TEST(AttemptsOfARun, HaveNoMoreRetriesThanAreLeft) {
  World world;
  world.env.program = [](const os::SpawnSpec&) { return os::FakeProgram{.exit_code = 1}; };
  const auto run = world.submit_trials(1, "retries: 1\nresources: {cpu: 1, mem: 100M}\n");
  leave(world, run, {{Cause::out_of_memory, 100 * kMega}});
  const auto done = drive(world.context, run.name, world.observer);
  EXPECT_EQ(done->counts, (store::Counts{.failed = 1}));
  EXPECT_EQ(world.env.spawned(), 1U);
}

TEST(AttemptsOfARun, AFlowsStepAsksForMoreTimeAndCores) {
  World world;
  for (const auto* path : {"/work", "/bin"}) (void)world.env.make_directory(path, 0700);
  world.env.put("/bin/x", "");
  world.env.variables["PATH"] = "/bin";
  std::vector<std::string> words;
  world.env.program = [&](const os::SpawnSpec& spec) {
    words.push_back(spec.argv.at(1));
    return os::FakeProgram{.duration = std::chrono::seconds(25)};
  };
  FlowProgram program;
  program.text =
      "name: f\nsteps:\n  a: {run: 'x {attempt}', retries: 5, timeout: '{attempt} * 10s', "
      "resources: {cpu: '{attempt}'}}\n";
  program.file = "f.yaml";
  program.name = "f";
  ASSERT_TRUE(check_flow(world.context, program, "/work"));
  const auto run = submit(world.context, program, "/work");
  ASSERT_TRUE(run) << run.error().message;
  const auto done = drive(world.context, run->name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 1}));
  EXPECT_EQ(words, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(attempts_of(world, run->id),
            (std::vector<std::string>{R"({"cpu":1} time limit)", R"({"cpu":2} time limit)",
                                      R"({"cpu":2} ok)"}))
      << "the machine has two cores";
  EXPECT_EQ(world.context.store->attempts(run->id, {1})->at(0).detail,
            "it ran longer than 10.0s; attempt 2 asks cpu 2, a time limit of 20.0s");
}

}  // namespace
}  // namespace berth::run
