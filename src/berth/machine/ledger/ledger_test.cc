#include "berth/machine/ledger/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/machine/ledger/ledger_file.h"
#include "berth/testing/ledger.h"
#include "berth/testing/machine.h"

namespace berth::machine {
namespace {

const std::string kDirectory = "/run/lock/berth";
const std::string kFile = kDirectory + "/1000";

Block four_cores() {
  Block block;
  block.resources.set(Known::cpu, 4000);
  block.resources.set(Known::mem, 8 * kGi);
  for (int core = 0; core < 4; ++core) block.cores.push_back({core, 0, 1000});
  return block;
}

AllocRequest cpus(int cores, std::int64_t priority = 0, std::string label = "run") {
  AllocRequest ask{{}, std::move(label), priority};
  ask.resources.set(Known::cpu, cores * 1000);
  return ask;
}

/// A process with its ledger, all on one machine in memory.
struct Process {
  Process(FakeMachine& machine, pid_t pid, uid_t user = 1000)
      : env(machine, pid, user), ledger(*Ledger::open(env, kDirectory)) {}

  Result<Alloc> acquire(const AllocRequest& ask, std::optional<AllocId> ticket = {}) {
    return ledger.acquire({four_cores()}, ask, ticket);
  }
  FakeProcess env;
  Ledger ledger;
};

/// How it failed; nullopt where it did not.
template <class T>
std::optional<ErrorKind> kind(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().kind);
}

class LedgerTest : public testing::Test {
 protected:
  FakeMachine machine;
  Process a{machine, 101}, b{machine, 102}, c{machine, 103};
  Process guest{machine, 201, 1001};  // of another user
};

TEST_F(LedgerTest, NoCoreIsInTwoAllocs) {
  const auto one = a.acquire(cpus(2));
  const auto two = guest.acquire(cpus(2));
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->block.cores, (std::vector<CoreShare>{{0, 0, 1000}, {1, 0, 1000}}));
  EXPECT_EQ(two->block.cores, (std::vector<CoreShare>{{2, 0, 1000}, {3, 0, 1000}}));
  EXPECT_TRUE(a.ledger.release(one->id));
  EXPECT_EQ(b.acquire(cpus(2))->block.cores, one->block.cores);
  EXPECT_EQ(machine.files.at(kFile).mode, 0644U) << "all may look, only the owner writes";
}

TEST_F(LedgerTest, WhatCouldNotBeReleasedIsReleasedWithTheLabel) {
  ASSERT_TRUE(a.acquire(cpus(1, 0, "t-1")));
  ASSERT_TRUE(a.acquire(cpus(1, 0, "t-2")));
  ASSERT_TRUE(b.acquire(cpus(1, 0, "t-1")));
  EXPECT_TRUE(a.ledger.release_all("t-1"));
  EXPECT_TRUE(a.ledger.release_all("t-1")) << "there is none any more";
  EXPECT_EQ(a.ledger.entries()->size(), 2U) << "what others hold stays, and other runs'";
}

TEST_F(LedgerTest, ARefusalSaysWhoHoldsTheRestAndLeavesNoTrace) {
  ASSERT_TRUE(a.acquire(cpus(3, 0, "digits-3")));
  const int written = machine.written;
  const auto refused = guest.acquire(cpus(2));
  EXPECT_EQ(kind(refused), ErrorKind::busy);
  EXPECT_EQ(refused.error().message, "cpu: requested 2, free 1 of 4; used by digits-3 3");
  EXPECT_EQ(machine.written, written);
  EXPECT_EQ(a.ledger.entries()->size(), 1U);
}

TEST_F(LedgerTest, WhatCanNeverFitIsToldAtOnceAndNeverQueued) {
  const AllocId ticket = a.ledger.new_ticket();
  EXPECT_EQ(kind(a.acquire(cpus(5), ticket)), ErrorKind::impossible);
  EXPECT_TRUE(a.ledger.entries()->empty());
}

TEST_F(LedgerTest, AWishThatBecomesImpossibleLeavesTheQueue) {
  const auto held = b.acquire(cpus(4));
  const AllocId ticket = a.ledger.new_ticket();
  EXPECT_EQ(kind(a.acquire(cpus(4), ticket)), ErrorKind::busy);
  Block shrunken = four_cores();
  shrunken.cores.pop_back();
  EXPECT_EQ(kind(a.ledger.acquire({shrunken}, cpus(4), ticket)), ErrorKind::impossible);
  EXPECT_EQ(b.ledger.entries()->size(), 1U);
}

TEST_F(LedgerTest, FirstComeFirstServedEvenWhenALaterOneWouldFitBeside) {
  const auto held = a.acquire(cpus(3));
  const AllocId large = b.ledger.new_ticket();
  const AllocId small = guest.ledger.new_ticket();
  EXPECT_EQ(kind(b.acquire(cpus(2, 0, "large"), large)), ErrorKind::busy);
  EXPECT_EQ(b.ledger.position(), 0U);
  const auto refused = guest.acquire(cpus(1), small);
  EXPECT_EQ(kind(refused), ErrorKind::busy);
  EXPECT_EQ(refused.error().message, "1 wait ahead of it, large first");
  EXPECT_EQ(guest.ledger.position(), 1U);
  EXPECT_EQ(kind(c.acquire(cpus(1))), ErrorKind::busy) << "not even without a ticket";
  EXPECT_EQ(c.ledger.position(), 2U);

  EXPECT_TRUE(a.ledger.release(held->id));
  EXPECT_EQ(kind(guest.acquire(cpus(1), small)), ErrorKind::busy);
  EXPECT_TRUE(b.acquire(cpus(2), large));
  EXPECT_TRUE(guest.acquire(cpus(1), small));
  EXPECT_TRUE(c.acquire(cpus(1)));
}

TEST_F(LedgerTest, GreaterPriorityIsServedFirst) {
  const auto held = a.acquire(cpus(4));
  const AllocId low = b.ledger.new_ticket();
  const AllocId high = guest.ledger.new_ticket();
  EXPECT_EQ(kind(b.acquire(cpus(4, 0), low)), ErrorKind::busy);
  EXPECT_EQ(kind(guest.acquire(cpus(4, 7), high)), ErrorKind::busy);
  EXPECT_EQ(guest.ledger.position(), 0U);
  EXPECT_TRUE(a.ledger.release(held->id));
  EXPECT_EQ(kind(b.acquire(cpus(4, 0), low)), ErrorKind::busy);
  EXPECT_EQ(b.ledger.position(), 1U);
  EXPECT_EQ(kind(c.acquire(cpus(1, 7))), ErrorKind::busy) << "the same priority, but later";
  EXPECT_TRUE(guest.acquire(cpus(2, 7), high));
  EXPECT_TRUE(c.acquire(cpus(1, 1))) << "before the one of priority 0";
}

TEST_F(LedgerTest, TheOrderOutlivesAClockThatGoesBack) {
  const auto held = a.acquire(cpus(4));
  const AllocId first = b.ledger.new_ticket();
  const AllocId second = c.ledger.new_ticket();
  EXPECT_EQ(kind(b.acquire(cpus(1), first)), ErrorKind::busy);
  machine.wall -= std::chrono::hours(1);
  EXPECT_EQ(kind(c.acquire(cpus(1), second)), ErrorKind::busy);
  EXPECT_EQ(kind(guest.acquire(cpus(1), guest.ledger.new_ticket())), ErrorKind::busy);
  EXPECT_EQ(c.ledger.position(), 1U);
  EXPECT_EQ(guest.ledger.position(), 2U);
  EXPECT_EQ(kind(b.acquire(cpus(1), first)), ErrorKind::busy);
  EXPECT_EQ(b.ledger.position(), 0U);
}

TEST_F(LedgerTest, ADeadWaiterIsPassedOver) {
  const auto held = a.acquire(cpus(4));
  EXPECT_EQ(kind(b.acquire(cpus(4), b.ledger.new_ticket())), ErrorKind::busy);
  EXPECT_EQ(kind(guest.acquire(cpus(4), guest.ledger.new_ticket())), ErrorKind::busy);
  EXPECT_TRUE(a.ledger.release(held->id));
  EXPECT_EQ(kind(c.acquire(cpus(1))), ErrorKind::busy);
  machine.dead = {102, 201};
  EXPECT_TRUE(c.acquire(cpus(1)));
  EXPECT_EQ(c.ledger.entries()->size(), 1U);
}

TEST_F(LedgerTest, WhatADeadHolderHadComesBack) {
  ASSERT_TRUE(b.acquire(cpus(2, 0, "ours")));
  ASSERT_TRUE(guest.acquire(cpus(2, 0, "theirs")));
  EXPECT_EQ(kind(a.acquire(cpus(2))), ErrorKind::busy);
  machine.dead = {201};
  const auto first = a.acquire(cpus(2));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->block.cores.front().core, 2);
  machine.dead = {201, 102};
  EXPECT_TRUE(a.acquire(cpus(2)));
  EXPECT_EQ(read_ledger_file(machine.files.at(kFile).text, "boot-1", 1000)->size(), 2U)
      << "our own dead are gone from our file";
}

TEST_F(LedgerTest, OurDeadGoFromTheFileAFewAtEachWrite) {
  for (pid_t pid = 1; pid <= 20; ++pid) {
    Process gone(machine, pid);
    AllocRequest tiny = cpus(0);
    tiny.resources.set(Known::cpu, 100);
    ASSERT_TRUE(gone.acquire(tiny));
    machine.dead.insert(pid);
  }
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(a.ledger.release(a.acquire(cpus(1))->id));
  EXPECT_TRUE(read_ledger_file(machine.files.at(kFile).text, "boot-1", 1000)->empty());
}

TEST_F(LedgerTest, WhoLivesIsAskedOnlyWhereItMatters) {
  ASSERT_TRUE(b.acquire(cpus(1)));
  ASSERT_TRUE(guest.acquire(cpus(1)));
  machine.asked_alive = 0;
  ASSERT_TRUE(guest.acquire(cpus(1)));
  EXPECT_EQ(machine.asked_alive, 0) << "it fits beside all, dead or alive";
  EXPECT_EQ(kind(guest.acquire(cpus(2))), ErrorKind::busy);
  EXPECT_EQ(machine.asked_alive, 1) << "of b only: once, and never of itself";
}

TEST_F(LedgerTest, IsReleasedOnceAndOnlyByItsHolder) {
  const auto held = a.acquire(cpus(1));
  EXPECT_EQ(kind(b.ledger.release(held->id)), ErrorKind::stale);
  EXPECT_EQ(kind(guest.ledger.release(held->id)), ErrorKind::stale);
  EXPECT_TRUE(a.ledger.release(held->id));
  EXPECT_EQ(kind(a.ledger.release(held->id)), ErrorKind::stale);
  EXPECT_EQ(kind(a.ledger.release(a.ledger.new_ticket())), ErrorKind::stale);
}

TEST_F(LedgerTest, HandedOverItIsTheOthersAndEndsWithIt) {
  const auto held = a.acquire(cpus(3, 0, "digits-3"));
  const AllocId ticket = a.ledger.new_ticket();
  EXPECT_EQ(kind(a.acquire(cpus(4), ticket)), ErrorKind::busy);
  const os::ProcessIdentity agent = b.env.identity;
  EXPECT_EQ(kind(a.ledger.hand_over(ticket, agent)), ErrorKind::stale) << "it only waits";
  EXPECT_EQ(kind(b.ledger.hand_over(held->id, agent)), ErrorKind::stale);
  EXPECT_EQ(kind(guest.ledger.hand_over(held->id, agent)), ErrorKind::stale);
  ASSERT_TRUE(a.ledger.hand_over(held->id, agent));
  EXPECT_FALSE(*a.ledger.holds(held->id));
  EXPECT_TRUE(*b.ledger.holds(held->id));
  EXPECT_FALSE(*guest.ledger.holds(held->id));
  EXPECT_EQ(kind(a.ledger.release(held->id)), ErrorKind::stale);
  EXPECT_EQ(a.ledger.entries()->at(0).label, "digits-3");
  EXPECT_EQ(a.ledger.entries()->at(0).block, held->block);
  machine.dead = {101};
  EXPECT_EQ(kind(c.acquire(cpus(2))), ErrorKind::busy) << "its first holder's death frees nothing";
  EXPECT_TRUE(b.ledger.release(held->id));
  EXPECT_TRUE(c.acquire(cpus(4)));
}

TEST_F(LedgerTest, HandedToTheDeadOrNotWrittenItStays) {
  const auto held = a.acquire(cpus(3));
  machine.dead = {102};
  EXPECT_EQ(kind(a.ledger.hand_over(held->id, b.env.identity)), ErrorKind::not_found);
  machine.dead = {};
  machine.writing_fails = ErrorKind::full;
  EXPECT_EQ(kind(a.ledger.hand_over(held->id, b.env.identity)), ErrorKind::full);
  machine.writing_fails = {};
  EXPECT_TRUE(*a.ledger.holds(held->id));
  EXPECT_TRUE(a.ledger.release(held->id));
}

TEST_F(LedgerTest, ATicketIsGivenUpByReleaseAndEndsWithTheGrant) {
  const auto held = a.acquire(cpus(4));
  const AllocId ticket = b.ledger.new_ticket();
  EXPECT_EQ(kind(b.ledger.release(ticket)), ErrorKind::stale) << "not yet in the queue";
  EXPECT_EQ(kind(b.acquire(cpus(4), ticket)), ErrorKind::busy);
  EXPECT_TRUE(b.ledger.release(ticket));
  EXPECT_TRUE(a.ledger.release(held->id));
  EXPECT_TRUE(c.acquire(cpus(1))) << "nobody waits";
  const auto granted = b.acquire(cpus(1), ticket);
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->id, ticket);
  EXPECT_EQ(kind(b.acquire(cpus(1), ticket)), ErrorKind::stale);
}

TEST_F(LedgerTest, AskingAgainWritesNothingAndKeepsThePlace) {
  const auto held = a.acquire(cpus(4));
  const AllocId ticket = b.ledger.new_ticket();
  EXPECT_EQ(kind(b.acquire(cpus(2), ticket)), ErrorKind::busy);
  EXPECT_EQ(kind(c.acquire(cpus(2), c.ledger.new_ticket())), ErrorKind::busy);
  const int written = machine.written;
  machine.wall += std::chrono::seconds(5);
  EXPECT_EQ(kind(b.acquire(cpus(2), ticket)), ErrorKind::busy);
  EXPECT_EQ(machine.written, written);
  EXPECT_EQ(kind(b.acquire(cpus(3), ticket)), ErrorKind::busy) << "a changed wish is written down";
  EXPECT_EQ(machine.written, written + 1);
  EXPECT_EQ(b.ledger.position(), 0U);
  EXPECT_EQ(b.ledger.entries()->at(1).block.resources.get(Known::cpu), 3000);
}

TEST_F(LedgerTest, ListsTheHeldThenTheWaitingAsTheyAreServed) {
  ASSERT_TRUE(a.acquire(cpus(4, 0, "holder")));
  EXPECT_EQ(kind(b.acquire(cpus(1, 0, "third"), b.ledger.new_ticket())), ErrorKind::busy);
  machine.wall += std::chrono::seconds(1);
  EXPECT_EQ(kind(guest.acquire(cpus(1, 0, "fourth"), guest.ledger.new_ticket())), ErrorKind::busy);
  EXPECT_EQ(kind(guest.acquire(cpus(1, 5, "second"), guest.ledger.new_ticket())), ErrorKind::busy);
  std::vector<std::string> labels;
  const auto entries = c.ledger.entries();
  for (const auto& entry : *entries) labels.push_back(entry.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"holder", "second", "third", "fourth"}));
  machine.dead = {102};
  EXPECT_EQ(c.ledger.entries()->size(), 3U);
}

TEST_F(LedgerTest, TellsWhetherAnotherProcessWouldBeServedFirst) {
  ASSERT_TRUE(a.acquire(cpus(4)));
  EXPECT_FALSE(*a.ledger.others_wait(0));
  EXPECT_EQ(kind(a.acquire(cpus(1), a.ledger.new_ticket())), ErrorKind::busy);
  EXPECT_FALSE(*a.ledger.others_wait(0)) << "our own wish is no other's";
  EXPECT_EQ(kind(b.acquire(cpus(1, 3), b.ledger.new_ticket())), ErrorKind::busy);
  EXPECT_TRUE(*a.ledger.others_wait(3));
  EXPECT_FALSE(*a.ledger.others_wait(4));
  machine.dead = {102};
  EXPECT_FALSE(*a.ledger.others_wait(0));
}

TEST_F(LedgerTest, AMachineOfOtherCoresCountsWhatIsOnThem) {
  ASSERT_TRUE(a.acquire(cpus(3)));
  Block upper = four_cores();
  for (auto& share : upper.cores) share.core += 2;  // 2 to 5, of which a holds one
  const auto granted = b.ledger.acquire({upper}, cpus(3), {});
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->block.cores.front().core, 3);
}

TEST_F(LedgerTest, OnlyFilesOfTheUserTheyAreNamedAfterCount) {
  ASSERT_TRUE(guest.acquire(cpus(4)));
  const std::string path = kDirectory + "/1001";
  EXPECT_EQ(kind(a.acquire(cpus(1))), ErrorKind::busy);
  machine.files.at(path).owner = 1002;
  EXPECT_TRUE(a.acquire(cpus(1)));
  for (const auto* name : {"/01001", "/+1001", "/1001.7.new", "/notes", "/4294968297"}) {
    machine.files[kDirectory + name] = machine.files.at(path);
    machine.files[kDirectory + name].owner = 1001;
  }
  EXPECT_TRUE(a.acquire(cpus(1)));
}

TEST_F(LedgerTest, AMalformedFileOfOthersIsPassedOverAndOursIsReplaced) {
  for (const auto* text : {"", "berth-ledger 2 boot-1", "berth-ledger 1 boot-1\n", "\n\n\n",
                           "berth-ledger 2 boot-1\nheld 1 2\n"}) {
    machine.files[kDirectory + "/1001"] = {text, 1001, 0644};
    machine.files[kFile] = {text, 1000, 0644};
    ASSERT_TRUE(a.acquire(cpus(4))) << text;
    EXPECT_EQ(machine.files.at(kDirectory + "/1001").text, text);
    EXPECT_EQ(read_ledger_file(machine.files.at(kFile).text, "boot-1", 1000)->size(), 1U);
  }
  machine.files[kFile] = {std::string(kLedgerFileMost + 1, 'x'), 1000, 0644};
  EXPECT_TRUE(a.acquire(cpus(4)));
}

TEST_F(LedgerTest, AnotherBootIsAnEmptyLedger) {
  ASSERT_TRUE(a.acquire(cpus(4)));
  ASSERT_FALSE(b.acquire(cpus(4)));
  machine.boot = "boot-2";
  EXPECT_TRUE(b.acquire(cpus(4)));
}

TEST_F(LedgerTest, WhatKilledWritersLeftIsTakenAway) {
  machine.files[kFile + ".77.new"] = {"half a li", 1000, 0644};
  machine.files[kFile + "0"] = {"another's", 10000, 0644};
  ASSERT_TRUE(a.acquire(cpus(1)));
  EXPECT_FALSE(machine.files.contains(kFile + ".77.new"));
  EXPECT_TRUE(machine.files.contains(kFile + "0"));
}

TEST_F(LedgerTest, WhereItCannotWriteItSaysWhatToDoAndGrantsNothing) {
  for (const auto kind : {ErrorKind::denied, ErrorKind::full, ErrorKind::io}) {
    machine.writing_fails = kind;
    for (const auto& error :
         {a.acquire(cpus(1)).error(), Ledger::open(a.env, "/elsewhere").error()}) {
      EXPECT_EQ(error.kind, kind);
      EXPECT_NE(error.message.find("BERTH_LEDGER"), std::string::npos) << error.message;
    }
    EXPECT_TRUE(a.ledger.entries()->empty());
  }
  machine.writing_fails.reset();
  const auto held = a.acquire(cpus(1));
  machine.writing_fails = ErrorKind::full;
  EXPECT_EQ(kind(a.ledger.release(held->id)), ErrorKind::full);
  EXPECT_EQ(a.ledger.entries()->size(), 1U);
  machine.directories.clear();
  EXPECT_EQ(kind(a.acquire(cpus(1))), ErrorKind::not_found);
}

TEST_F(LedgerTest, AFullFileTakesNoMoreUntilSomebodyDies) {
  std::vector<LedgerEntry> entries(kLedgerEntriesMost);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].id = {static_cast<std::int64_t>(i + 1)};
    entries[i].holder = {102, 1020};
  }
  machine.files[kFile] = {write_ledger_file("boot-1", entries), 1000, 0644};
  EXPECT_EQ(kind(a.acquire(cpus(1))), ErrorKind::full);
  machine.dead = {102};
  EXPECT_TRUE(a.acquire(cpus(1)));
}

TEST_F(LedgerTest, NamesItsDirectory) {
  EXPECT_EQ(Ledger::default_directory(a.env), "/run/lock/berth");
  a.env.variables["BERTH_LEDGER"] = "/scratch/berth";
  EXPECT_EQ(Ledger::default_directory(a.env), "/scratch/berth");
}

TEST_F(LedgerTest, WaitersSleepLongerTheFartherBackTheyStand) {
  EXPECT_EQ(Ledger::retry_delay(0), from_ms(2));
  EXPECT_EQ(Ledger::retry_delay(9), from_ms(20));
  EXPECT_EQ(Ledger::retry_delay(124), from_ms(250));
  EXPECT_EQ(Ledger::retry_delay(SIZE_MAX), from_ms(250));
}

Host two_devices() {
  Host host{four_cores()};
  for (int i = 0; i < 2; ++i)
    host.total.devices.push_back({fmt::format("GPU-{}", i), i, 0, 32LL << 30, 13, 13, true});
  return host;
}

AllocRequest gpus(std::int64_t whole, std::int64_t memory = 0) {
  AllocRequest ask;
  ask.resources.set(Known::gpu, whole);
  ask.resources.set(Known::gpu_mem, memory);
  ask.label = "digits-3";
  return ask;
}

TEST_F(LedgerTest, DevicesOfOthersAreTaken) {
  const auto one = a.ledger.acquire(two_devices(), gpus(1), {});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->block.devices.at(0).uuid, "GPU-0");
  const auto part = guest.ledger.acquire(two_devices(), gpus(1, 10LL << 30), {});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->block.devices.at(0).uuid, "GPU-1");
  EXPECT_EQ(kind(b.ledger.acquire(two_devices(), gpus(1), {})), ErrorKind::busy);
  EXPECT_TRUE(b.ledger.acquire(two_devices(), gpus(1, 20LL << 30), {})) << "beside the other part";
  ASSERT_TRUE(a.ledger.release(one->id));
  EXPECT_TRUE(b.ledger.acquire(two_devices(), gpus(1), {}));
}

TEST_F(LedgerTest, ADeviceThatAForeignProcessUsesIsNotGivenWhole) {
  Host host = two_devices();
  Block use;
  use.devices = {{.uuid = "GPU-0", .memory = 1 << 30, .whole = false}};
  host.foreign.emplace_back("process 77 (python3)", use);
  const auto one = a.ledger.acquire(host, gpus(1), {});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->block.devices.at(0).uuid, "GPU-1");
  const auto refused = b.ledger.acquire(host, gpus(1), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::busy);
  EXPECT_NE(refused.error().message.find("process 77 (python3) 1"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace berth::machine
