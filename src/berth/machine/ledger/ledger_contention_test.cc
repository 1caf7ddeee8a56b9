// Real processes on one ledger, with a witness in shared memory that knows at every moment who
// holds how much, and real kills.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "berth/base/rng.h"
#include "berth/machine/ledger/ledger.h"
#include "berth/testing/machine.h"

namespace berth::machine {
namespace {

constexpr unsigned kProcesses = 16;
constexpr int kRounds = 200;
constexpr unsigned kLongest_s = 240;  // else it hangs; sanitizers make it slow
constexpr std::size_t kCores = 4;

/// Four bits for each process in one word, so that one look sees all of them at one moment.
class Tally {
 public:
  /// What all hold together, after it.
  unsigned add(unsigned process, std::uint64_t units) {
    const std::uint64_t more = units << (4 * process);
    std::uint64_t word = word_.fetch_add(more) + more;
    unsigned sum = 0;
    for (; word != 0; word >>= 4) sum += word & 15U;
    return sum;
  }
  void subtract(unsigned process, std::uint64_t units) { word_.fetch_sub(units << (4 * process)); }
  void clear(unsigned process) { word_.fetch_and(~(std::uint64_t{15} << (4 * process))); }
  std::uint64_t of(unsigned process) const { return word_.load() >> (4 * process) & 15U; }

 private:
  std::atomic<std::uint64_t> word_ = 0;
};

struct Witness {
  Tally half_cores, gibibytes;
  std::array<Tally, kCores> on_core;  // half cores
  std::atomic<int> grants = 0, excesses = 0, errors = 0;

  void holds(unsigned process, const Block& block) {
    const auto count = [&](Tally& tally, std::int64_t units, unsigned most) {
      if (tally.add(process, static_cast<std::uint64_t>(units)) > most) ++excesses;
    };
    count(half_cores, block.resources.get(Known::cpu) / 500, 2 * kCores);
    count(gibibytes, block.resources.get(Known::mem) / kGi, 8);
    for (const auto& share : block.cores)
      count(on_core.at(static_cast<std::size_t>(share.core)), share.milli / 500, 2);
    ++grants;
  }
  void gives_back(unsigned process, const Block& block) {
    const auto count = [&](Tally& tally, std::int64_t units) {
      tally.subtract(process, static_cast<std::uint64_t>(units));
    };
    count(half_cores, block.resources.get(Known::cpu) / 500);
    count(gibibytes, block.resources.get(Known::mem) / kGi);
    for (const auto& share : block.cores)
      count(on_core.at(static_cast<std::size_t>(share.core)), share.milli / 500);
  }
  void forget(unsigned process) {
    half_cores.clear(process);
    gibibytes.clear(process);
    for (auto& core : on_core) core.clear(process);
  }
};

Block four_cores_of_two_nodes() {
  Block block;
  block.resources.set(Known::cpu, 1000 * kCores);
  block.resources.set(Known::mem, 8 * kGi);
  for (int core = 0; core < static_cast<int>(kCores); ++core)
    block.cores.push_back({core, core / 2, 1000});
  return block;
}

AllocRequest random_ask(Rng& rng) {
  AllocRequest ask;
  ask.label = "contender";
  ask.resources.set(Known::cpu, static_cast<std::int64_t>(1 + rng.below(2 * kCores)) * 500);
  ask.resources.set(Known::mem, static_cast<std::int64_t>(1 + rng.below(8)) * kGi);
  ask.priority = static_cast<std::int64_t>(rng.below(2));
  return ask;
}

Status one_round(os::Env& env, Ledger& ledger, Rng& rng, Witness& witness, unsigned process) {
  const AllocRequest ask = random_ask(rng);
  const AllocId ticket = ledger.new_ticket();
  for (;;) {
    const auto alloc = ledger.acquire({four_cores_of_two_nodes()}, ask, ticket);
    if (alloc) {
      witness.holds(process, alloc->block);
      sched_yield();
      witness.gives_back(process, alloc->block);
      return ledger.release(alloc->id);
    }
    if (alloc.error().kind != ErrorKind::busy) return std::unexpected(alloc.error());
    // A tenth of what is advised: here nobody computes, all only wait.
    BERTH_TRY(env.wait({}, env.now() + Ledger::retry_delay(ledger.position()) / 10));
  }
}

/// The whole life of one process; ends it.
[[noreturn]] void contend(const std::string& directory, Witness& witness, unsigned process) {
  alarm(kLongest_s);
  const auto env = os::posix_env();
  auto ledger = Ledger::open(*env, directory);
  Rng rng(process);
  Status status;
  for (int round = 0; ledger && status && round < kRounds; ++round)
    status = one_round(*env, *ledger, rng, witness, process);
  if (!status) {
    ++witness.errors;
    std::fprintf(stderr, "process %u: %s\n", process, status.error().message.c_str());
  }
  _exit(ledger && status ? 0 : 1);
}

class LedgerContention : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/berth-ledger-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    void* shared =
        mmap(nullptr, sizeof(Witness), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    witness_ = new (shared) Witness;
    for (unsigned process = 0; process < kProcesses; ++process) {
      pids_.at(process) = fork();
      ASSERT_GE(pids_.at(process), 0);
      if (pids_.at(process) == 0) contend(directory_, *witness_, process);
    }
  }
  void TearDown() override {
    munmap(witness_, sizeof(Witness));
    std::filesystem::remove_all(directory_);
  }

  void kill_in_its_sleep(unsigned process) {
    const pid_t pid = std::exchange(pids_.at(process), 0);
    ASSERT_GT(pid, 0);
    int how = 0;
    kill(pid, SIGSTOP);
    ASSERT_EQ(waitpid(pid, &how, WUNTRACED), pid);
    if (WIFEXITED(how)) return;
    // It counts in the ledger until it is dead, but in the witness no longer: never the other way.
    witness_->forget(process);
    kill(pid, SIGKILL);
    ASSERT_EQ(waitpid(pid, &how, 0), pid);
  }
  void expect_the_rest_to_finish() {
    for (const pid_t pid : pids_) {
      int how = 0;
      if (pid == 0) continue;
      ASSERT_EQ(waitpid(pid, &how, 0), pid);
      EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << "status " << how;
    }
    EXPECT_EQ(witness_->excesses, 0) << "something was in two allocs";
    EXPECT_EQ(witness_->errors, 0);
    const auto env = os::posix_env();
    EXPECT_TRUE(Ledger::open(*env, directory_)->entries()->empty());
  }

  std::string directory_;
  Witness* witness_ = nullptr;
  std::array<pid_t, kProcesses> pids_{};
};

TEST_F(LedgerContention, NothingIsInTwoAllocsAndAllFinish) {
  expect_the_rest_to_finish();
  EXPECT_EQ(witness_->grants, static_cast<int>(kProcesses) * kRounds);
}

TEST_F(LedgerContention, WhatKilledOnesHeldComesBack) {
  Rng rng(1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kLongest_s);
  unsigned killed = 0;
  for (int next = 100; killed < kProcesses / 2; next += 100) {
    while (witness_->grants < next) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "nobody is served any more";
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    unsigned victim = 0;
    const auto will_do = [&] {  // every second one dies while it holds something
      return pids_.at(victim) != 0 && (killed % 2 != 0 || witness_->half_cores.of(victim) != 0);
    };
    do victim = static_cast<unsigned>(rng.below(kProcesses));
    while (!will_do() && std::chrono::steady_clock::now() < end);
    ASSERT_NO_FATAL_FAILURE(kill_in_its_sleep(victim));
    ++killed;
  }
  expect_the_rest_to_finish();
}

/// One that hands its alloc over and is killed at any moment: the alloc is its own and goes with
/// it, or the other's and stays; never nobody's or both's.
TEST(LedgerHandOver, IsWholeOrNotAtAllWhenKilledAnywhere) {
  Rng rng(2);
  std::string pattern = (std::filesystem::temp_directory_path() / "berth-ledger-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const auto env = os::posix_env();
  auto ledger = Ledger::open(*env, pattern);
  ASSERT_TRUE(ledger);
  const os::ProcessIdentity us = env->self();
  int handed = 0;
  std::uint64_t within_us = 6000;  // so that about half of them come to it, however slow this is
  for (int round = 0; round < 60; ++round) {
    const pid_t giver = fork();
    if (giver == 0) {
      const auto own = os::posix_env();
      auto mine = Ledger::open(*own, pattern);
      AllocRequest ask{{}, "giver"};
      ask.resources.set(Known::cpu, 1000);
      const auto alloc = mine->acquire({four_cores_of_two_nodes()}, ask, {});
      if (alloc) (void)mine->hand_over(alloc->id, us);
      pause();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(within_us)));
    kill(giver, SIGKILL);
    waitpid(giver, nullptr, 0);
    const auto entries = ledger->entries();
    ASSERT_TRUE(entries) << entries.error().message;
    ASSERT_LE(entries->size(), 1U);
    within_us =
        entries->empty() ? within_us * 5 / 4 : std::max<std::uint64_t>(within_us * 4 / 5, 100);
    for (const auto& entry : *entries) {
      ++handed;
      EXPECT_EQ(entry.holder, env->self());
      EXPECT_EQ(entry.block.resources.get(Known::cpu), 1000);
      EXPECT_TRUE(ledger->release(entry.id));
    }
  }
  EXPECT_GT(handed, 0);
  EXPECT_LT(handed, 60);
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace berth::machine
