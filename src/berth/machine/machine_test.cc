#include "berth/machine/machine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "berth/base/rng.h"
#include "berth/machine/ledger/ledger_file.h"
#include "berth/testing/machine.h"

namespace berth::machine {
namespace {

Resources amounts(std::initializer_list<std::pair<std::string_view, std::int64_t>> list) {
  Resources resources;
  for (const auto& [resource, amount] : list) resources.set(resource, amount);
  return resources;
}

std::vector<CoreShare> cores(int first, int count, int milli = 1000) {
  std::vector<CoreShare> shares;
  for (int core = first; core < first + count; ++core) shares.push_back({core, core / 4, milli});
  return shares;
}

/// 24 GiB and 4 slots, on the node of its number.
DeviceShare card(int index) {
  return {fmt::format("GPU-{}", index), index, index, 24 * kGi, 4, 4, true};
}

/// 8 cores on two nodes, 16 GiB, 100 GiB of disk, 2 GPUs.
Block workstation() {
  return {amounts({{"cpu", 8000},
                   {"mem", 16 * kGi},
                   {"disk", 100 * kGi},
                   {"gpu", 2},
                   {"gpu_slots", 8},
                   {"gpu_mem", 48 * kGi}}),
          cores(0, 8),
          {card(0), card(1)}};
}

Request ask(std::initializer_list<std::pair<std::string_view, std::int64_t>> list,
            std::string holder = "t") {
  return {amounts(list), std::move(holder)};
}

TEST(Machine, GivesWhatIsAskedAndTakesItBack) {
  Machine machine(workstation());
  {
    const auto held = machine.reserve(ask({{"cpu", 2500}, {"mem", kGi}}));
    ASSERT_TRUE(held) << held.error().message;
    EXPECT_EQ(held->block(), (Block{amounts({{"cpu", 2500}, {"mem", kGi}}),
                                    {{0, 0, 1000}, {1, 0, 1000}, {2, 0, 500}}}));
    EXPECT_EQ(machine.free().get(Known::cpu), 5500);
    EXPECT_EQ(machine.free().get(Known::mem), 15 * kGi);
    EXPECT_EQ(machine.held(), held->block().resources);
  }
  EXPECT_EQ(machine.free(), workstation().resources);
  EXPECT_TRUE(machine.held().empty());
}

TEST(Machine, ARefusalTakesNothingAndNamesWhoHoldsTheRest) {
  Machine machine(workstation());
  const auto one = machine.reserve(ask({{"cpu", 4000}}, "digits-3"));
  const auto two = machine.reserve(ask({{"cpu", 2500}, {"mem", kGi}}, "sweep-1/7"));
  const auto before = machine.free();
  const auto refused = machine.reserve(ask({{"cpu", 4000}, {"mem", kGi}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(),
            (Error{ErrorKind::busy,
                   "cpu: requested 4, free 1.5 of 8; used by digits-3 4, sweep-1/7 2.5"}));
  EXPECT_EQ(machine.free(), before);
}

TEST(Machine, WhatIsFreeCanBeWrittenAndRead) {
  Rng chance(1);
  for (int round = 0; round < 200; ++round) {
    Machine machine(workstation());
    std::vector<Reservation> held;
    for (int i = 0; i < 6; ++i) {
      Request request = ask({{"cpu", static_cast<std::int64_t>(chance.below(3000))}});
      if (chance.below(2) == 0) request.resources.set(Known::gpu, 1);
      if (auto got = machine.reserve(request)) held.push_back(*std::move(got));
      const Block free = machine.free_block();
      const auto read = read_block(write_block(free));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(*read, free);
    }
    // More than there is: foreign processes came.
    Block over = workstation();
    over.resources.set(Known::cpu, 9000);
    held.push_back(*machine.occupy(over, "others"));
    EXPECT_TRUE(read_block(write_block(machine.free_block()))) << write_block(machine.free_block());
  }
}

TEST(Machine, NamesThreeHoldersEachOnceTheGreatestFirst) {
  Machine machine(workstation());
  std::vector<Reservation> held;
  for (const auto* holder : {"a", "b", "c", "d", "e", "e", "e\n"})
    held.push_back(*machine.reserve(ask({{"cpu", 1000}}, holder)));
  const auto refused = machine.reserve(ask({{"cpu", 1001}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "cpu: requested 1.001, free 1 of 8; used by e 2, a 1, b 1 and 3 more");
}

TEST(Machine, RefusesTheScarcestFirst) {
  const std::vector<std::string_view> order{"gpu", "cpu", "mem", "disk", "cows", "licence"};
  Block total = workstation();
  total.resources.set("cows", 3000);
  total.resources.set("licence", 2000);
  Request everything{total.resources, "all"};
  for (const auto* of_a_part : {"gpu_slots", "gpu_mem"}) everything.resources.set(of_a_part, 0);
  Machine machine(total);
  const auto all = machine.reserve(everything);
  ASSERT_TRUE(all);
  Request wish = everything;
  for (const auto resource : order) {
    const auto refused = machine.reserve(wish);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::busy);
    EXPECT_TRUE(refused.error().message.starts_with(fmt::format("{}: requested", resource)))
        << refused.error().message;
    wish.resources.set(resource, 0);
  }
  EXPECT_TRUE(machine.reserve(wish)) << "an empty wish always fits";
}

TEST(Machine, ImpossibleBeatsBusy) {
  Machine machine(workstation());
  const auto gpus = machine.reserve(ask({{"gpu", 2}}));
  const auto refused = machine.reserve(ask({{"gpu", 1}, {"mem", 17 * kGi}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(),
            (Error{ErrorKind::impossible, "17 GiB of memory requested; this machine has 16 GiB"}));
  const auto unknown = machine.reserve(ask({{"licence", 1000}}));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error(),
            (Error{ErrorKind::impossible, "1 of 'licence' requested; this machine has none"}));
}

TEST(Machine, ADryRunAnswersAsReserveWouldAndTakesNothing) {
  Machine machine(workstation());
  const Request wish = ask({{"cpu", 5000}, {"gpu", 1}});
  const auto planned = machine.dry_run(wish);
  ASSERT_TRUE(planned);
  EXPECT_TRUE(machine.held().empty());
  const auto held = machine.reserve(wish);
  ASSERT_TRUE(held);
  EXPECT_EQ(*planned, held->block());
  const auto refused = machine.dry_run(wish);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), machine.reserve(wish).error());
}

TEST(Machine, IsReleasedOnce) {
  Machine machine(workstation());
  auto held = machine.reserve(ask({{"cpu", 1000}}));
  const ReservationId id = held->id();
  EXPECT_TRUE(held->release());
  EXPECT_FALSE(*held);
  EXPECT_EQ(held->release().error().kind, ErrorKind::stale);
  EXPECT_EQ(machine.release(id).error().kind, ErrorKind::stale);
  EXPECT_EQ(machine.free(), workstation().resources);
}

TEST(Machine, AnOldOrForeignIdIsNeverMistaken) {
  Machine machine(workstation());
  Machine other(workstation());
  auto first = machine.reserve(ask({{"cpu", 1000}}));
  const ReservationId old = first->id();
  EXPECT_TRUE(first->release());
  const auto second = machine.reserve(ask({{"cpu", 1000}}));
  const auto foreign = other.reserve(ask({{"cpu", 1000}}));
  ASSERT_EQ(second->id().slot, old.slot);
  ASSERT_EQ(foreign->id().slot, old.slot);
  EXPECT_EQ(machine.find(old), nullptr);
  for (const ReservationId id : {old, foreign->id(), ReservationId{}, ReservationId{99, 1}})
    EXPECT_EQ(machine.release(id).error().kind, ErrorKind::stale);
  EXPECT_EQ(machine.held().get(Known::cpu), 1000);
}

TEST(Machine, AMovedHandleGivesBackOnceAndAnAssignedOneItsOwn) {
  Machine machine(workstation());
  auto one = *machine.reserve(ask({{"cpu", 1000}}));
  auto two = *machine.reserve(ask({{"cpu", 2000}}));
  Reservation moved = std::move(one);
  EXPECT_EQ(machine.held().get(Known::cpu), 3000);
  moved = std::move(two);
  EXPECT_FALSE(two);
  EXPECT_EQ(machine.held().get(Known::cpu), 2000);
  moved = {};
  EXPECT_TRUE(machine.held().empty());
}

TEST(Machine, AQuotaMayBeTighterThanTheCores) {
  Machine machine({amounts({{"cpu", 1500}}), cores(0, 8)});
  const auto one = machine.reserve(ask({{"cpu", 1000}}, "one"));
  EXPECT_EQ(one->block().cores, cores(0, 1));
  const auto refused = machine.reserve(ask({{"cpu", 1000}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "cpu: requested 1, free 0.5 of 1.5; used by one 1");
  EXPECT_EQ(machine.reserve(ask({{"cpu", 1600}})).error().kind, ErrorKind::impossible);
  EXPECT_TRUE(machine.reserve(ask({{"cpu", 500}})));
}

TEST(Machine, WithoutCoresOnlyAmountsCount) {
  Machine machine({amounts({{"cpu", 3000}}), {}});
  const auto held = machine.reserve(ask({{"cpu", 2500}}));
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->block().cores.empty());
  EXPECT_FALSE(machine.reserve(ask({{"cpu", 501}})));
  EXPECT_TRUE(machine.reserve(ask({{"cpu", 500}})));
}

TEST(Machine, OccupiedCoresAreNotLentAgain) {
  Machine machine(workstation());
  const auto other = machine.occupy({amounts({{"cpu", 3500}, {"mem", kGi}, {"cows", 1000}}),
                                     {{0, 0, 1000}, {1, 0, 1000}, {2, 0, 1000}, {3, 0, 500}}},
                                    "other");
  ASSERT_TRUE(other);
  EXPECT_EQ(machine.held(), amounts({{"cpu", 3500}, {"mem", kGi}})) << "cows are not ours";
  EXPECT_EQ(machine.reserve(ask({{"cpu", 4500}}))->block().cores,
            (std::vector<CoreShare>{
                {3, 0, 500}, {4, 1, 1000}, {5, 1, 1000}, {6, 1, 1000}, {7, 1, 1000}}));
}

TEST(Machine, CpuOnForeignCoresIsNotOurs) {
  Machine machine(workstation());
  const auto half = machine.occupy({amounts({{"cpu", 4000}}), cores(6, 4)}, "half");
  EXPECT_EQ(machine.held().get(Known::cpu), 2000);
  EXPECT_FALSE(machine.overdrawn());
  const auto none = machine.occupy({amounts({{"cpu", 4000}}), cores(8, 4)}, "none");
  EXPECT_EQ(machine.held().get(Known::cpu), 2000);
  const auto anywhere = machine.occupy({amounts({{"cpu", 1000}}), {}}, "anywhere");
  EXPECT_EQ(machine.held().get(Known::cpu), 3000);
  EXPECT_EQ(machine.free().get(Known::cpu), 5000);
}

TEST(Machine, TwoWhoHoldOneCoreOverdrawIt) {
  Machine machine(workstation());
  auto one = machine.occupy({amounts({{"cpu", 1000}}), cores(0, 1)}, "one");
  EXPECT_FALSE(machine.overdrawn());
  auto two = machine.occupy({amounts({{"cpu", 1000}}), cores(0, 1)}, "two");
  EXPECT_TRUE(machine.overdrawn());
  EXPECT_TRUE(one->release());
  EXPECT_FALSE(machine.overdrawn());
  EXPECT_EQ(machine.dry_run(ask({{"cpu", 7000}}))->cores, cores(1, 7)) << "core 0 is still lent";
}

TEST(Machine, OccupyingBeyondEveryNumberIsRefused) {
  Machine machine({amounts({{"mem", INT64_MAX}}), {}});
  const auto one = machine.occupy({amounts({{"mem", INT64_MAX}}), {}}, "one");
  ASSERT_TRUE(one);
  const auto two = machine.occupy({amounts({{"mem", 1}}), {}}, "two");
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().kind, ErrorKind::impossible);
  EXPECT_EQ(machine.held().get(Known::mem), INT64_MAX);
}

TEST(Machine, AShrunkenTotalLeavesNothingFreeAndNothingNegative) {
  Machine machine(workstation());
  auto held = machine.reserve(ask({{"cpu", 6000}, {"mem", 10 * kGi}}));
  machine.set_total({amounts({{"cpu", 4000}, {"mem", 8 * kGi}}), cores(0, 4)});
  EXPECT_TRUE(machine.overdrawn());
  EXPECT_TRUE(machine.free().empty());
  EXPECT_EQ(held->block().resources.get(Known::cpu), 6000) << "reservations stay as they are";
  EXPECT_EQ(machine.reserve(ask({{"cpu", 1}})).error().kind, ErrorKind::busy);
  EXPECT_TRUE(held->release());
  EXPECT_FALSE(machine.overdrawn());
  EXPECT_EQ(machine.free(), machine.total().resources);
  EXPECT_EQ(machine.reserve(ask({{"cpu", 4000}}))->block().cores, cores(0, 4));
}

TEST(Machine, CoresThatComeBackAreStillLent) {
  Machine machine(workstation());
  const auto held = machine.reserve(ask({{"cpu", 2000}}));
  machine.set_total({amounts({{"cpu", 6000}}), cores(2, 6)});
  EXPECT_TRUE(machine.overdrawn()) << "its cores are gone";
  machine.set_total(workstation());
  EXPECT_FALSE(machine.overdrawn());
  EXPECT_EQ(machine.dry_run(ask({{"cpu", 6000}}))->cores, cores(2, 6));
}

TEST(Machine, TotalCpuIsAtMostItsCores) {
  const Machine machine({amounts({{"cpu", 8000}}), cores(0, 4)});
  EXPECT_EQ(machine.total().resources.get(Known::cpu), 4000);
}

TEST(Machine, RequestsAndBlocksAreWrittenForTheLog) {
  EXPECT_EQ(to_json(ask({{"cpu", 1500}, {"mem", kGi}}, "a\"b")),
            R"({"holder":"a\"b","resources":{"cpu":1.5,"mem":1073741824}})");
  EXPECT_EQ(to_json(Block{amounts({{"cpu", 1500}}), {{0, 0, 1000}, {4, 1, 500}}}),
            R"({"resources":{"cpu":1.5},"cores":[{"core":0,"node":0,"milli":1000},)"
            R"({"core":4,"node":1,"milli":500}]})");
}

/// What is held plus what is free is the total, of every amount and every core.
void expect_amounts_conserved(const Machine& machine, const std::vector<Reservation>& held) {
  Resources sum;
  std::map<int, std::int64_t> lent;
  for (const auto& one : held) {
    ASSERT_TRUE(sum.add(one.block().resources));
    std::int64_t on_cores = 0;
    for (const auto& share : one.block().cores) {
      lent[share.core] += share.milli;
      on_cores += share.milli;
    }
    ASSERT_EQ(on_cores, one.block().resources.get(Known::cpu));
  }
  for (const auto& [core, milli] : lent) ASSERT_LE(milli, 1000) << "core " << core;
  ASSERT_EQ(sum, machine.held());
  ASSERT_TRUE(sum.add(machine.free()));
  ASSERT_EQ(sum, machine.total().resources);
  ASSERT_FALSE(machine.overdrawn());
}

Request random_request(Rng& rng) {
  const auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(rng.below(most)); };
  Request request = ask({{"mem", up_to(6) * kGi}, {"disk", up_to(4) * kGi}, {"cows", up_to(900)}});
  request.resources.set(Known::cpu, rng.below(2) == 0 ? up_to(5) * 1000 : up_to(3000));
  request.resources.set(Known::gpu, rng.below(4) == 0 ? 1 : 0);
  return request;
}

TEST(Machine, NothingIsLostOrMadeInAnySequence) {
  Block total = workstation();
  total.resources.set("cows", 3000);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    Machine machine(total);
    std::vector<Reservation> held;
    for (int step = 0; step < 200; ++step) {
      if (held.empty() || rng.below(5) < 3) {
        const Request request = random_request(rng);
        const bool fits = machine.free().covers(request.resources);
        auto got = machine.reserve(request);
        ASSERT_EQ(got.has_value(), fits);
        if (got) held.push_back(*std::move(got));
      } else {
        const auto gone = held.begin() + static_cast<std::ptrdiff_t>(rng.below(held.size()));
        ASSERT_TRUE(gone->release());
        held.erase(gone);
      }
      ASSERT_NO_FATAL_FAILURE(expect_amounts_conserved(machine, held));
    }
  }
}

}  // namespace
}  // namespace berth::machine
