// Two workers of different sizes, each an agent of its own, under one run; one is killed half-way.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "berth/agent/client/launched_agent.h"
#include "berth/testing/fake_cluster.h"
#include "berth/testing/posix.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

class StealersProcess : public os::PosixTest {
 protected:
  StealersProcess() {
    context_.env = env_.get();
    context_.state_directory = path("state");
    EXPECT_TRUE(env_->make_directory(context_.state_directory, 0700));
    context_.store = store::memory_store();
    context_.ledger_directory = path("ledger");
    context_.capacity.disk_directory = context_.state_directory;
    context_.sources = [this](const store::RunRecord&) -> Result<Sources> {
      Sources sources;
      sources.main = source("desk", 1);
      sources.auxiliary.push_back(source("lab", 2));
      return sources;
    };
  }

  void SetUp() override {
    if (env_->affinity().size() < 2) GTEST_SKIP() << "it takes two cores";
  }

  Source source(const std::string& name, int cores) {
    auto pool = std::make_unique<cluster::FakePool>(*env_, cluster::FakePool::Options{});
    pool->add(cluster::block_of(cores, 1 << 30));
    const auto start_worker = [this, name](const cluster::Alloc& alloc) {
      agent::StartOptions options{.program = *agent::agent_program(*env_),
                                  .directory = path(fmt::format("{}-{}", name, ++agents_)),
                                  .block = alloc.block,
                                  .outlive = false};
      const auto here = env_->affinity();
      for (auto& core : options.block.cores)
        core.core = here.at(static_cast<std::size_t>(core.core));
      return agent::LaunchedAgent::start(*env_, std::move(options), {1, env_->environment()});
    };
    return {.name = name, .cluster = std::move(pool), .start_worker = start_worker};
  }

  store::RunRecord submit_trials() {
    const auto program = experiment::read_program(
        "name: t\nrun: sleep 0.2\nparams: {i: {min: 1, max: 20, type: int}}\n", "t.yaml");
    return *submit(context_, *program, directory_);
  }

  Context context_;
  testing::Quiet observer_;
  int agents_ = 0;
};

TEST_F(StealersProcess, TheStealerSharesTheWorkAndGoes) {
  const auto run = submit_trials();
  const auto done = drive(context_, run.name, observer_);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 20}));
  const auto tasks = context_.store->tasks(run.id).value();
  EXPECT_TRUE(std::ranges::all_of(tasks, [](const auto& task) { return task.attempts == 1; }));
  EXPECT_EQ(agents_, 2) << "one here, one there";
}

TEST_F(StealersProcess, ASourceWhoseWorkersDoNotStartIsLeftAloneForLongerAndLonger) {
  context_.sources = [this](const store::RunRecord&) -> Result<Sources> {
    Sources sources;
    sources.main = source("desk", 1);
    sources.auxiliary.push_back(source("lab", 2));
    sources.auxiliary.back().start_worker = [this](const cluster::Alloc&) {
      ++agents_;
      return agent::AttachedAgent::attach(*env_, path("nobody"), {1, {}});
    };
    return sources;
  };
  const auto run = submit_trials();
  const auto done = drive(context_, run.name, observer_);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 20}));
  EXPECT_LE(agents_, 10) << "asked every 50 ms it would be dozens";
}

TEST_F(StealersProcess, WhatAKilledOneRanIsRunAgainOnceEach) {
  class Killer final : public testing::Quiet {
   public:
    Killer(os::Env& env, std::string agent) : env_(env), agent_(std::move(agent)) {}
    void on_progress(const Progress& progress, Mono) override {
      if (killed || progress.counts.done < 6) return;
      const auto text = env_.read_file(agent_, 1 << 16);
      if (!text) return;
      const auto pid = std::stoi(text->substr(text->find("\"pid\":") + 6));
      killed = kill(static_cast<pid_t>(pid), SIGKILL) == 0;
    }
    bool killed = false;

   private:
    os::Env& env_;
    const std::string agent_;
  };
  Killer killer(*env_, path("lab-2/agent.json"));
  const auto run = submit_trials();
  const auto done = drive(context_, run.name, killer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(killer.killed);
  EXPECT_EQ(done->counts, (store::Counts{.done = 20}));
  const auto tasks = context_.store->tasks(run.id).value();
  for (const auto& task : tasks) {
    EXPECT_LE(task.attempts, 2);
    const auto attempts = context_.store->attempts(run.id, task.number).value();
    EXPECT_EQ(std::ranges::count(attempts, exec::Cause::ok, &store::AttemptRecord::cause), 1);
  }
}

}  // namespace
}  // namespace berth::run
