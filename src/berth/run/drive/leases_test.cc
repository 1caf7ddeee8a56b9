// The leases of a run: whom it asks for room, in which order, and what it says while there is none.
#include "berth/run/drive/leases.h"

#include <gtest/gtest.h>

#include <deque>

#include "berth/testing/fake_cluster.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Answers as the test says, and remembers what it was asked.
struct Script {
  std::deque<Result<cluster::Alloc>> answers;
  std::vector<cluster::Wish> wishes;
  std::deque<Result<std::optional<Mono>>> keepalives;
  Mono retry_at{};
  int stopped = 0;
};

class Scripted final : public cluster::Cluster {
 public:
  explicit Scripted(Script& script) : script_(script) {}
  Result<std::vector<cluster::Offer>> offers() override { return std::vector<cluster::Offer>{}; }
  Result<cluster::Alloc> accept(const cluster::Offer&, const std::optional<machine::Request>&,
                                const cluster::Labels&) override {
    return fail(ErrorKind::busy, "no");
  }
  Result<std::optional<Mono>> keepalive(machine::AllocId) override {
    return take(script_.keepalives);
  }
  Result<cluster::Alloc> inspect(machine::AllocId) override { return fail(ErrorKind::stale, "no"); }
  Status free(machine::AllocId) override { return {}; }
  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override {
    script_.wishes.push_back(wish);
    return take(script_.answers);
  }
  Mono retry_at() override { return script_.retry_at; }
  void stop_waiting() override { ++script_.stopped; }

 private:
  template <class T>
  static T take(std::deque<T>& answers) {
    if (answers.empty()) return fail(ErrorKind::busy, "it is taken");
    T answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  Script& script_;
};

class LeasesTest : public ::testing::Test {
 protected:
  LeasesTest() {
    record_ = world_.submit_trials(3);
    const auto program = experiment::from_json_text(record_.spec_json);
    run_.emplace(ActiveRun{.env = world_.env,
                           .observer = world_.observer,
                           .record = record_,
                           .workload = trials(world_.context, record_, *program),
                           .directory = "/run"});
    run_->tasks = *world_.context.store->tasks(record_.id);
    run_->scheduler.emplace(schedule::Options{});
    std::vector<schedule::Task> tasks;
    for (const auto& task : run_->tasks) tasks.push_back(run_->scheduled(task));
    run_->scheduler->add(tasks, run_->effects);
    for (const auto& task : tasks)
      if (task.gated) run_->scheduler->proceed(task.number, run_->effects);
    Sources sources;
    const auto elsewhere = [](const cluster::Alloc&) -> std::unique_ptr<exec::Worker> {
      return nullptr;
    };
    sources.main = Source{
        .name = "lab", .cluster = std::make_unique<Scripted>(main_), .start_worker = elsewhere};
    sources.auxiliary.push_back({.name = "cloud",
                                 .cluster = std::make_unique<Scripted>(auxiliary_),
                                 .start_worker = elsewhere});
    leases_.emplace(*run_, world_.context, std::move(sources),
                    *machine::Ledger::open(world_.env, "/ledger"));
  }
  cluster::Alloc alloc(const std::string& machine, std::optional<Duration> lease = {}) {
    cluster::Alloc alloc{.id = {1}, .machine = machine, .block = cluster::block_of(1, 1 << 30)};
    if (lease) alloc.expires = world_.env.now() + *lease;
    return alloc;
  }

  testing::World world_;
  store::RunRecord record_;
  Script main_, auxiliary_;
  std::optional<ActiveRun> run_;
  std::optional<Leases> leases_;
};

TEST_F(LeasesTest, TheMainSourceIsAskedFirstAndTheOthersForWhatItDoesNotGive) {
  main_.retry_at = world_.env.now() + seconds(5);
  auxiliary_.answers.push_back(alloc("vm1"));
  const auto lease = leases_->seek({});
  ASSERT_TRUE(lease && *lease);
  EXPECT_EQ((*lease)->source, 1U);
  EXPECT_EQ((*lease)->alloc.machine, "vm1");
  EXPECT_EQ(leases_->number_of(**lease), 1);
  ASSERT_EQ(main_.wishes.size(), 1U);
  EXPECT_TRUE(main_.wishes[0].waits) << "with nothing in hand the run queues";
  EXPECT_FALSE(auxiliary_.wishes[0].waits);
  EXPECT_EQ(leases_->waiting_for({}), "lab: it is taken");
  EXPECT_EQ(leases_->waiting_for({.has_workers = true, .has_alloc = true}), "");
  // It is not asked again before it said that it is worth it.
  ASSERT_TRUE(leases_->seek({.has_workers = true, .has_alloc = true}));
  EXPECT_EQ(main_.wishes.size(), 1U);
  EXPECT_EQ(leases_->deadline(), Mono{});
  world_.env.freeze(seconds(5));
  ASSERT_TRUE(leases_->seek({.has_workers = true, .has_alloc = true}));
  EXPECT_EQ(main_.wishes.size(), 2U);
}

TEST_F(LeasesTest, ASourceThatGivesOnlyErrorsIsLeftAfterAWhile) {
  const auto denied = [&] {
    main_.answers.push_back(fail(ErrorKind::denied, "Permission denied"));
    auxiliary_.answers.push_back(fail(ErrorKind::denied, "Permission denied"));
    return leases_->seek({});
  };
  ASSERT_TRUE(denied());
  EXPECT_FALSE(leases_->no_source_left({}));
  world_.env.freeze(kRefusedMost);
  ASSERT_TRUE(denied());
  const auto error = leases_->no_source_left({});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "lab: Permission denied; cloud: Permission denied");
  const auto asked = main_.wishes.size();
  ASSERT_TRUE(leases_->seek({}));
  EXPECT_EQ(main_.wishes.size(), asked) << "it is closed";
}

TEST_F(LeasesTest, ALeaseIsRenewedAtAThirdTriedAgainSoonAndEndsOnce) {
  main_.answers.push_back(alloc("box", seconds(30)));
  auto lease = **leases_->seek({});
  main_.keepalives.push_back(std::optional(world_.env.now() + seconds(30)));
  EXPECT_FALSE(leases_->keep(lease));
  EXPECT_EQ(lease.renew_at, world_.env.now() + seconds(10));
  world_.env.freeze(seconds(10));
  main_.keepalives.push_back(fail(ErrorKind::io, "cut"));
  EXPECT_FALSE(leases_->keep(lease));
  EXPECT_LT(*lease.renew_at, world_.env.now() + seconds(4));
  EXPECT_GT(*lease.renew_at, world_.env.now());
  world_.env.freeze(seconds(20));
  const auto ended = leases_->keep(lease);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->message, "its lease has ended");
  EXPECT_FALSE(leases_->keep(lease));
}

TEST_F(LeasesTest, ASourceWhoseWorkersAreLostIsAskedAgainAfterGrowingPauses) {
  const Lease lease{.source = 0, .alloc = alloc("box"), .is_remote = true};
  Duration before{};
  for (int losses = 0; losses < 4; ++losses) {
    leases_->turn(false);
    leases_->on_lost(lease, {ErrorKind::io, "gone"}, {});
    main_.answers.push_back(alloc("box"));
    const Mono begun = world_.env.now();
    while (main_.answers.size() > 0) {
      world_.env.freeze(milliseconds(10));
      (void)leases_->seek({});
    }
    const Duration pause = world_.env.now() - begun;
    EXPECT_GE(pause, before * 5 / 4);
    before = pause;
  }
  leases_->on_lost(lease, {ErrorKind::unconfirmed, "large"}, {});
  const auto asked = main_.wishes.size();
  world_.env.freeze(seconds(3600));
  (void)leases_->seek({});
  EXPECT_EQ(main_.wishes.size(), asked) << "nobody said yes";
}

}  // namespace
}  // namespace berth::run
