#include <gtest/gtest.h>

#include "berth/placement/subsets.h"
#include "berth/testing/placement.h"

namespace berth::placement {
namespace {

using testing::Machine;
using testing::set_of;

TEST(Allocator, HoldsAndFrees) {
  Allocator allocator(testing::dgx1_volta().chooser());
  const auto pair = allocator.allocate(PolicyKind::static_dgx1_volta, 2);
  ASSERT_TRUE(pair);
  EXPECT_EQ(allocator.available(), first(8) ^ set_of({0, 3}));
  EXPECT_EQ(allocator.allocate(PolicyKind::packed, 7).error().kind, ErrorKind::busy);
  EXPECT_EQ(allocator.allocate(PolicyKind::packed, 1, set_of({3})).error().message,
            "required {3} already in use");
  EXPECT_EQ(allocator.allocate(PolicyKind::packed, 1, set_of({9})).error().kind,
            ErrorKind::invalid);
  EXPECT_TRUE(allocator.allocate_these(set_of({1, 7})));
  EXPECT_EQ(allocator.allocate_these(set_of({6, 7})).error().message, "{7} already in use");
  EXPECT_EQ(allocator.allocate_these(set_of({8})).error().kind, ErrorKind::invalid);
  EXPECT_EQ(allocator.allocate_these(0).error().kind, ErrorKind::invalid);
  EXPECT_EQ(allocator.available(), set_of({2, 4, 5, 6}));
  EXPECT_EQ(allocator.free(set_of({2, 3})).error().message,
            "{2} not in use, so it cannot be freed");
  EXPECT_EQ(allocator.free(set_of({2, 3})).error().kind, ErrorKind::stale);
  EXPECT_EQ(allocator.free(set_of({12})).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(allocator.free(pair->devices));
  EXPECT_TRUE(allocator.free(set_of({1, 7})));
  EXPECT_EQ(allocator.available(), first(8));
}

class Highest final : public Policy {
 public:
  DeviceSet choose(std::span<const std::int32_t>, int, const Question& question) override {
    return std::bit_floor(question.available);
  }
};

TEST(Allocator, TakesAPolicyOfTheCallersOwn) {
  Allocator allocator(testing::islands(8, 4).chooser());
  Highest highest;
  EXPECT_EQ(allocator.allocate(highest, 1)->devices, set_of({7}));
  EXPECT_EQ(allocator.allocate(highest, 1)->devices, set_of({6}));
  EXPECT_EQ(allocator.allocate(highest, 2).error().kind, ErrorKind::invalid);
  EXPECT_EQ(allocator.available(), first(6));
}

TEST(Allocator, NothingIsHeldTwiceOverAThousandSteps) {
  Rng rng(11);
  Allocator allocator(testing::random_machine(rng, 12).chooser());
  std::vector<DeviceSet> held;
  for (int step = 0; step < 1000; ++step) {
    if (rng.below(2) == 0 && !held.empty()) {
      const auto i = static_cast<std::ptrdiff_t>(rng.below(held.size()));
      ASSERT_TRUE(allocator.free(held[static_cast<std::size_t>(i)]));
      held.erase(held.begin() + i);
    } else if (const auto answer = allocator.allocate(static_cast<PolicyKind>(rng.below(3)),
                                                      1 + static_cast<int>(rng.below(5)))) {
      held.push_back(answer->devices);
    }
    DeviceSet all_held = 0;
    for (const DeviceSet set : held) {
      ASSERT_EQ(all_held & set, 0U);
      all_held |= set;
    }
    ASSERT_EQ(allocator.available(), first(12) ^ all_held);
  }
}

/// A day of jobs of 1, 2, 4 and 8 GPUs that come and go and wait their turn. An island is broken
/// when it was wholly free and a job takes a part of it: what could have been given whole no longer
/// can. Breaks that nothing could avoid, such as the first single GPU of the day, count as well. A
/// job that one island could hold, but which lies across several, is counted apart.
class Day {
 public:
  Day(const Machine& machine, std::vector<DeviceSet> islands, PolicyKind policy)
      : allocator_(machine.chooser()),
        devices_(machine.devices),
        islands_(std::move(islands)),
        policy_(policy) {}

  struct Count {
    int broken = 0, across = 0;
  };

  Count pass(std::uint64_t seed) {
    Rng rng(seed);
    for (int minute = 0; minute < 24 * 60; ++minute) {
      std::erase_if(running_, [&](const Job& job) {
        return job.end <= minute && allocator_.free(job.devices).has_value();
      });
      if (rng.uniform() < kLoad * devices_ / kDeviceMinutesOfAJob) {
        const int count = kSizes[rng.below(kSizes.size())];
        waiting_.push_back({std::min(count, devices_), 10 + static_cast<int>(rng.below(60))});
      }
      std::erase_if(waiting_, [&](const Waiting& job) { return start(job, minute); });
    }
    return count_;
  }

 private:
  static constexpr std::array kSizes{1, 1, 1, 1, 2, 2, 4, 8};
  static constexpr double kDeviceMinutesOfAJob = 2.5 * 39.5;  // on average
  static constexpr double kLoad = 0.6;                        // of all devices

  struct Waiting {
    int count, minutes;
  };
  struct Job {
    DeviceSet devices;
    int end;
  };

  bool start(const Waiting& job, int minute) {
    const DeviceSet before = allocator_.available();
    const auto answer = allocator_.allocate(policy_, job.count);
    if (!answer) return false;
    int touched = 0;
    for (const DeviceSet island : islands_) {
      const bool was_free = (island & ~before) == 0;
      const DeviceSet taken = answer->devices & island;
      if (was_free && taken != 0 && taken != island) ++count_.broken;
      if (taken != 0) ++touched;
    }
    if (touched > 1 && job.count <= size(islands_.front())) ++count_.across;
    running_.push_back({answer->devices, minute + job.minutes});
    return true;
  }

  Allocator allocator_;
  int devices_;
  std::vector<DeviceSet> islands_;
  PolicyKind policy_;
  Count count_;
  std::vector<Waiting> waiting_;
  std::vector<Job> running_;
};

std::vector<DeviceSet> islands_of(const topology::Topology& topology) {
  std::vector<DeviceSet> islands;
  for (const auto& members : topology::islands(topology)) {
    DeviceSet& island = islands.emplace_back(0);
    for (const std::size_t device : members) island |= DeviceSet{1} << device;
  }
  return islands;
}

Day::Count twenty_days(const Machine& machine, const std::vector<DeviceSet>& islands,
                       PolicyKind policy) {
  Day::Count sum;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Day::Count day = Day(machine, islands, policy).pass(seed);
    sum.broken += day.broken;
    sum.across += day.across;
  }
  std::printf("%s, 20 days of %.*s: %d islands broken, %d jobs across islands\n",
              machine.name.c_str(), static_cast<int>(name(policy).size()), name(policy).data(),
              sum.broken, sum.across);
  return sum;
}

void expect_a_fifth_fewer_breaks(const Machine& machine, const std::vector<DeviceSet>& islands) {
  const auto packed = twenty_days(machine, islands, PolicyKind::packed);
  const auto simple = twenty_days(machine, islands, PolicyKind::simple);
  EXPECT_LE(packed.broken, simple.broken * 8 / 10) << machine.name;
  EXPECT_LE(packed.across, simple.across / 2) << machine.name;
}

TEST(PackedDay, BreaksAFifthFewerIslandsThanSimple) {
  for (const std::string name : {"4xrtx3090-nvlink-pairs", "8xmi250x-gcds"}) {
    const topology::Topology topology = topology::known_machine(name).value();
    expect_a_fifth_fewer_breaks(testing::machine_of(topology), islands_of(topology));
  }
  for (const int island : {2, 4, 8}) {
    std::vector<DeviceSet> islands;
    for (int at = 0; at < 16; at += island) islands.push_back(first(island) << at);
    expect_a_fifth_fewer_breaks(testing::islands(16, island), islands);
  }
}

/// Of two quads in a row the lowest indices break few that could be spared: nearly all breaks there
/// are those of an empty machine. What is spared is jobs that lie across.
TEST(PackedDay, BreaksFewerQuadsOfADgx1AndHalvesTheJobsThatLieAcross) {
  for (const std::string name : {"dgx1-p100", "dgx1-v100"}) {
    const topology::Topology topology = topology::known_machine(name).value();
    const Machine machine = testing::machine_of(topology);
    const auto packed = twenty_days(machine, islands_of(topology), PolicyKind::packed);
    const auto simple = twenty_days(machine, islands_of(topology), PolicyKind::simple);
    EXPECT_LE(packed.broken, simple.broken * 9 / 10) << name;
    EXPECT_LE(packed.across, simple.across / 2) << name;
    EXPECT_LE(packed.broken + packed.across, (simple.broken + simple.across) * 3 / 4) << name;
  }
}

}  // namespace
}  // namespace berth::placement
