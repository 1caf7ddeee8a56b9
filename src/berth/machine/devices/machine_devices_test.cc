// Devices in a Machine: whole, shared, foreign, and nothing lent twice.
#include <gtest/gtest.h>

#include "berth/base/rng.h"
#include "berth/machine/machine.h"
#include "berth/testing/machine.h"

namespace berth::machine {
namespace {

/// 8 devices of 32 GiB and 13 slots on two nodes, 8 cores on the same.
Block server() {
  Block block;
  block.resources.set(Known::cpu, 8000);
  for (int i = 0; i < 8; ++i) {
    block.cores.push_back({i, i / 4, 1000});
    block.devices.push_back({fmt::format("GPU-{}", i), i, i / 4, 32 * kGi, 13, 13, true});
  }
  return block;
}

Request ask(std::int64_t gpu, std::int64_t memory = 0, std::int64_t slots = 0,
            std::string holder = "t") {
  Request request{{}, std::move(holder)};
  request.resources.set(Known::gpu, gpu);
  request.resources.set(Known::gpu_mem, memory);
  request.resources.set(Known::gpu_slots, slots);
  return request;
}

TEST(MachineDevices, AmountsAreThoseOfTheDevices) {
  Machine machine(server());
  EXPECT_EQ(machine.total().resources.get(Known::gpu), 8);
  EXPECT_EQ(machine.total().resources.get(Known::gpu_mem), 256 * kGi);
  EXPECT_EQ(machine.free().get(Known::gpu_slots), 8 * 13);
}

TEST(MachineDevices, AWholeDeviceTakesAllOfItAndGivesItBack) {
  Machine machine(server());
  auto held = machine.reserve(ask(2));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->block().resources.get(Known::gpu), 2);
  EXPECT_EQ(held->block().resources.get(Known::gpu_mem), 64 * kGi);
  EXPECT_EQ(machine.free().get(Known::gpu), 6);
  EXPECT_EQ(machine.free().get(Known::gpu_mem), 192 * kGi);
  ASSERT_TRUE(held->release());
  EXPECT_EQ(machine.free(), machine.total().resources);
}

TEST(MachineDevices, ASharedDeviceIsNotHandedOutWholeUntilTheLastPartIsBack) {
  Machine machine(server());
  auto one = machine.reserve(ask(1, 10 * kGi));
  auto two = machine.reserve(ask(1, 10 * kGi));
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->block().devices[0].uuid, two->block().devices[0].uuid);
  EXPECT_EQ(one->block().resources.get(Known::gpu), 0);
  EXPECT_EQ(machine.free().get(Known::gpu), 7);
  EXPECT_FALSE(machine.reserve(ask(8)));
  ASSERT_TRUE(one->release());
  EXPECT_EQ(machine.free().get(Known::gpu), 7);
  ASSERT_TRUE(two->release());
  EXPECT_TRUE(machine.reserve(ask(8)));
}

TEST(MachineDevices, WhoHoldsAPartIsNamedWhenAWholeOneIsShort) {
  Machine machine(server());
  const auto part = machine.reserve(ask(1, 10 * kGi, 0, "sweep-1"));
  const auto whole = machine.reserve(ask(4, 0, 0, "train-2"));
  const auto refused = machine.reserve(ask(4));
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error(),
      (Error{ErrorKind::busy, "gpu: requested 4, free 3 of 8; used by train-2 4, sweep-1 1"}));
  EXPECT_EQ(machine.reserve(ask(9)).error(),
            (Error{ErrorKind::impossible, "9 GPUs requested; this machine has 8"}));
  EXPECT_EQ(machine.reserve(ask(1, 33 * kGi)).error().kind, ErrorKind::impossible);
}

TEST(MachineDevices, CoresComeFromTheNodeOfTheDevices) {
  Machine machine(server());
  const auto first = machine.reserve(ask(4));
  Request request = ask(1);
  request.resources.set(Known::cpu, 2000);
  const auto held = machine.reserve(request);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->block().devices[0].node, 1);
  for (const auto& share : held->block().cores) EXPECT_EQ(share.node, 1);
}

TEST(MachineDevices, ARefusalOfCoresTakesNoDevice) {
  Machine machine(server());
  Request request = ask(1);
  request.resources.set(Known::cpu, 9000);
  EXPECT_EQ(machine.reserve(request).error().message, "9 cores requested; this machine has 8");
  EXPECT_EQ(machine.free().get(Known::gpu), 8);
}

TEST(MachineDevices, ForeignProcessesAreCharged) {
  Machine machine(server());
  Block use;
  use.devices = {{.uuid = "GPU-3", .memory = 20 * kGi, .whole = false}};
  const auto held = machine.occupy(use, "process 77 (python3)");
  ASSERT_TRUE(held);
  EXPECT_EQ(machine.free().get(Known::gpu), 7);
  EXPECT_EQ(machine.free().get(Known::gpu_mem), (256 - 20) * kGi);
  EXPECT_EQ(machine.reserve(ask(8)).error().message,
            "gpu: requested 8, free 7 of 8; used by process 77 (python3) 1");
  const auto part = machine.reserve(ask(1, 12 * kGi));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->block().devices[0].uuid, "GPU-3") << "its rest fits best";
}

TEST(MachineDevices, OneThatWentOutOfServiceIsLentNoMoreAndItsHolderKeepsIt) {
  Machine machine(server());
  auto held = machine.reserve(ask(1));
  ASSERT_TRUE(held);
  ASSERT_EQ(held->block().devices[0].index, 0);
  Block without = server();
  without.devices.erase(without.devices.begin());
  machine.set_total(without);
  EXPECT_EQ(machine.free().get(Known::gpu), 7);
  EXPECT_EQ(machine.reserve(ask(8)).error().message, "8 GPUs requested; this machine has 7");
  EXPECT_TRUE(machine.dry_run(ask(7)));
  machine.set_total(server());
  EXPECT_EQ(machine.free().get(Known::gpu), 7) << "it is healthy again, and still held";
  ASSERT_TRUE(held->release());
  EXPECT_EQ(machine.free().get(Known::gpu), 8);
}

TEST(MachineDevices, AnAllocOfAPartGivesThatPartAndNoMore) {
  Machine machine(server());
  const auto alloc = machine.reserve(ask(1, 10 * kGi));
  ASSERT_TRUE(alloc);
  Machine leased(alloc->block());
  EXPECT_EQ(leased.reserve(ask(1)).error().kind, ErrorKind::impossible);
  EXPECT_EQ(leased.reserve(ask(1, 11 * kGi)).error().kind, ErrorKind::impossible);
  const auto task = leased.reserve(ask(1, 10 * kGi));
  ASSERT_TRUE(task);
  EXPECT_EQ(task->block().devices, alloc->block().devices);
}

/// What is lent of each device, by adding it all up.
void expect_devices_conserved(const Machine& machine, const std::vector<Reservation>& held) {
  struct Sum {
    std::int64_t memory = 0, slots = 0, holders = 0;
    bool whole = false;
  };
  std::array<Sum, 8> sums;
  for (const auto& one : held)
    for (const auto& share : one.block().devices) {
      Sum& sum = sums.at(static_cast<std::size_t>(share.index));
      sum.memory += share.memory;
      sum.slots += share.slots;
      sum.whole = sum.whole || share.whole;
      ++sum.holders;
    }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto& free = machine.free_devices()[i];
    ASSERT_LE(sums[i].memory, 32 * kGi);
    ASSERT_EQ(free.memory, 32 * kGi - sums[i].memory);
    ASSERT_EQ(free.slots, 13 - sums[i].slots);
    ASSERT_EQ(free.whole, sums[i].holders == 0);
    if (sums[i].whole) {
      ASSERT_EQ(sums[i].holders, 1);
    }
  }
}

TEST(MachineDevices, NothingIsLentTwiceInAMillionArrivalsAndDepartures) {
  constexpr int kSteps = 1'000'000;
  Rng rng(5);
  Machine machine(server());
  std::vector<Reservation> held;
  int granted = 0;
  for (int step = 0; step < kSteps; ++step) {
    if (held.empty() || rng.below(2) == 0) {
      const bool whole = rng.below(8) == 0;
      const auto bytes = static_cast<std::int64_t>(1 + rng.below(12 * kGi));
      auto got = machine.reserve(whole ? ask(1 + static_cast<std::int64_t>(rng.below(3)))
                                       : ask(1, bytes, static_cast<std::int64_t>(rng.below(4))));
      if (got) {
        held.push_back(*std::move(got));
        ++granted;
      } else {
        ASSERT_EQ(got.error().kind, ErrorKind::busy);
      }
    } else {
      const std::size_t at = rng.below(held.size());
      std::swap(held[at], held.back());
      ASSERT_TRUE(held.back().release());
      held.pop_back();
    }
    ASSERT_NO_FATAL_FAILURE(expect_devices_conserved(machine, held)) << "step " << step;
  }
  EXPECT_GT(granted, kSteps / 4);
}

}  // namespace
}  // namespace berth::machine
