#include <gtest/gtest.h>

#include "berth/placement/placement_testing.h"
#include "berth/placement/subsets.h"

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
            "required {3} held already");
  EXPECT_EQ(allocator.allocate(PolicyKind::packed, 1, set_of({9})).error().kind,
            ErrorKind::invalid);
  EXPECT_TRUE(allocator.allocate_these(set_of({1, 7})));
  EXPECT_EQ(allocator.allocate_these(set_of({6, 7})).error().message, "{7} held already");
  EXPECT_EQ(allocator.allocate_these(set_of({8})).error().kind, ErrorKind::invalid);
  EXPECT_EQ(allocator.allocate_these(0).error().kind, ErrorKind::invalid);
  EXPECT_EQ(allocator.available(), set_of({2, 4, 5, 6}));
  EXPECT_EQ(allocator.free(set_of({2, 3})).error().message, "{2} not held, so it cannot be freed");
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
/// when a job takes a part of one that was wholly free.
class Day {
 public:
  Day(const Machine& machine, int island, PolicyKind policy)
      : allocator_(machine.chooser()),
        devices_(machine.devices),
        island_(island),
        policy_(policy) {}

  int broken(std::uint64_t seed) {
    Rng rng(seed);
    for (int minute = 0; minute < 24 * 60; ++minute) {
      std::erase_if(running_, [&](const Job& job) {
        return job.end <= minute && allocator_.free(job.devices).has_value();
      });
      if (rng.uniform() < kLoad * devices_ / kDeviceMinutesOfAJob) {
        waiting_.push_back(
            {kSizes[rng.below(kSizes.size())], 10 + static_cast<int>(rng.below(60))});
      }
      std::erase_if(waiting_, [&](const Waiting& job) { return start(job, minute); });
    }
    return broken_;
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
    for (int at = 0; at < devices_; at += island_) {
      const DeviceSet island = first(island_) << at;
      const DeviceSet left = allocator_.available() & island;
      const DeviceSet taken = answer->devices & island;
      if (taken == 0) continue;
      const bool takes_a_part_of_a_free_one = (before & island) == island && left != 0;
      const bool lies_across = job.count <= island_ && taken != answer->devices;
      if (takes_a_part_of_a_free_one || lies_across) ++broken_;
    }
    running_.push_back({answer->devices, minute + job.minutes});
    return true;
  }

  Allocator allocator_;
  int devices_, island_;
  PolicyKind policy_;
  int broken_ = 0;
  std::vector<Waiting> waiting_;
  std::vector<Job> running_;
};

class PackedDay : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(PackedDay, BreaksAFifthFewerIslandsThanSimple) {
  const auto [devices, island] = GetParam();
  const Machine machine = testing::islands(devices, island);
  int packed = 0, simple = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    packed += Day(machine, island, PolicyKind::packed).broken(seed);
    simple += Day(machine, island, PolicyKind::simple).broken(seed);
  }
  RecordProperty("packed", packed);
  RecordProperty("simple", simple);
  std::printf("%d devices in islands of %d, 20 days: packed breaks %d, simple %d (%.0f %% fewer)\n",
              devices, island, packed, simple, 100.0 * (simple - packed) / simple);
  EXPECT_LE(packed, simple * 8 / 10);
}
INSTANTIATE_TEST_SUITE_P(Machines, PackedDay,
                         ::testing::Values(std::pair{8, 4}, std::pair{16, 4}, std::pair{16, 8}));

}  // namespace
}  // namespace berth::placement
