#include "berth/machine/devices/device_shares.h"
#include "berth/testing/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>

#include "berth/base/rng.h"

namespace berth::machine {
namespace {

DeviceShare device(int index, std::int64_t memory, int slots = 13, bool whole = true) {
  return {fmt::format("GPU-{}", index),
          index,
          index / 4,
          memory,
          slots,
          13,
          whole,
          topology::Vendor::nvidia,
          whole ? memory : 0};
}

DeviceNeed need(std::int64_t gpu, std::int64_t memory = 0, std::int64_t slots = 0,
                std::vector<int> sizes = {}) {
  Resources wanted;
  wanted.set(Known::gpu, gpu);
  wanted.set(Known::gpu_mem, memory);
  wanted.set(Known::gpu_slots, slots);
  return device_need(wanted, {.slot_sizes = std::move(sizes)});
}

DeviceNeed need(std::int64_t gpu, DeviceSelection selection, std::int64_t memory = 0) {
  Resources wanted;
  wanted.set(Known::gpu, gpu);
  wanted.set(Known::gpu_mem, memory);
  return device_need(wanted, std::move(selection));
}

std::vector<int> indices(const std::vector<DeviceShare>& shares) {
  std::vector<int> result;
  for (const auto& share : shares) result.push_back(share.index);
  return result;
}

using Indices = std::vector<int>;
using Variables = std::vector<std::pair<std::string, std::string>>;

TEST(DeviceShares, WithGpuAloneTheyAreWhole) {
  const std::vector free{device(0, 10 * kGi, 13, false), device(1, 32 * kGi), device(2, 32 * kGi)};
  const auto got = choose_devices(free, need(2), nullptr);
  EXPECT_EQ(got, (std::vector{free[1], free[2]})) << "all of their memory and slots";
  EXPECT_TRUE(choose_devices(free, need(3), nullptr).empty()) << "a shared one is never whole";
  EXPECT_TRUE(choose_devices(free, need(0), nullptr).empty());
}

TEST(DeviceShares, APartComesOfTheDeviceThatItFillsBest) {
  const std::vector free{device(0, 32 * kGi), device(1, 12 * kGi, 13, false),
                         device(2, 9 * kGi, 13, false), device(3, 16 * kGi)};
  const auto got = choose_devices(free, need(1, 10 * kGi), nullptr);
  ASSERT_EQ(indices(got), Indices{1});
  EXPECT_EQ(got[0].memory, 10 * kGi);
  EXPECT_EQ(got[0].slots, 0);
  EXPECT_FALSE(got[0].whole);
  EXPECT_EQ(indices(choose_devices(free, need(0, 13 * kGi), nullptr)), Indices{3})
      << "gpu: 1 need not be said";
  EXPECT_TRUE(choose_devices(free, need(1, 33 * kGi), nullptr).empty());
}

TEST(DeviceShares, AmongEqualsADeviceThatIsSharedAlreadyComesFirst) {
  const std::vector free{device(0, 16 * kGi), device(1, 16 * kGi, 13, false)};
  EXPECT_EQ(indices(choose_devices(free, need(1, kGi), nullptr)), Indices{1});
}

TEST(DeviceShares, MemoryAndSlotsMustBeOnTheSameDevice) {
  const std::vector free{device(0, 32 * kGi, 2, false), device(1, 4 * kGi, 13, false),
                         device(2, 20 * kGi, 8, false)};
  EXPECT_EQ(indices(choose_devices(free, need(1, 10 * kGi, 5), nullptr)), Indices{2});
  EXPECT_TRUE(choose_devices(free, need(1, 30 * kGi, 5), nullptr).empty());
}

TEST(DeviceShares, SeveralGiveTheirPartEach) {
  const std::vector free{device(0, 32 * kGi), device(1, 4 * kGi, 13, false), device(2, 32 * kGi)};
  const auto got = choose_devices(free, need(2, 8 * kGi), nullptr);
  EXPECT_EQ(indices(got), (Indices{0, 2}));
  EXPECT_EQ(got[1].memory, 8 * kGi);
}

TEST(DeviceShares, OnlyOfAcceptableSizes) {
  std::vector free{device(0, 32 * kGi), device(1, 80 * kGi), device(2, 32 * kGi)};
  free[1].size = free[1].slots = 99;
  EXPECT_EQ(indices(choose_devices(free, need(1, 0, 0, {99, 31}), nullptr)), Indices{1});
  EXPECT_EQ(indices(choose_devices(free, need(1, kGi, 0, {99}), nullptr)), Indices{1});
  EXPECT_TRUE(choose_devices(free, need(1, 0, 0, {31}), nullptr).empty());
}

TEST(DeviceShares, WholeOnesBelongTogetherAndLeaveTheBestRest) {
  const auto topology = *topology::known_machine("dgx1-v100");
  const auto links = *DeviceLinks::make(topology);
  auto free = shares_of(topology);
  ASSERT_EQ(free.size(), 8U);
  EXPECT_EQ(free[0].slots, 13);
  EXPECT_EQ(indices(choose_devices(free, need(4), links.get())), (Indices{0, 1, 2, 3}));
  free.erase(free.begin() + 5);  // the second quad is broken: the first stays whole
  EXPECT_EQ(indices(choose_devices(free, need(1), links.get())), Indices{4});
  EXPECT_EQ(indices(choose_devices(free, need(1, kGi), links.get())), Indices{4})
      << "a part of a fresh one too";
}

TEST(DeviceShares, ADeviceTheLinksDoNotKnowMakesAllAlike) {
  const auto links = *DeviceLinks::make(*topology::known_machine("dgx1-v100"));
  const std::vector free{device(5, kGi), device(6, kGi)};
  EXPECT_EQ(indices(choose_devices(free, need(1), links.get())), Indices{5});
}

TEST(DeviceShares, ChargedIsWhatAMachineLoses) {
  Resources wanted;
  wanted.set(Known::gpu, 2);
  wanted.set(Known::cpu, 500);
  EXPECT_EQ(charged(wanted), wanted);
  wanted.set(Known::gpu_mem, 10 * kGi);
  const Resources lost = charged(wanted);
  EXPECT_EQ(lost.get(Known::gpu), 0);
  EXPECT_EQ(lost.get(Known::gpu_mem), 20 * kGi);
  EXPECT_EQ(lost.get(Known::cpu), 500);
  wanted.set(Known::gpu_mem, INT64_MAX / 2 + 1);
  EXPECT_EQ(charged(wanted).get(Known::gpu_mem), INT64_MAX) << "never a wrapped number";
}

TEST(DeviceShares, AShortageIsNamed) {
  const std::vector devices{device(0, 32 * kGi), device(1, 16 * kGi, 4, false)};
  using Said = std::pair<Known, std::string>;
  const auto total = [](const std::vector<DeviceShare>& all, const DeviceNeed& need) {
    return shortage_of_total(all, need, "this machine");
  };
  EXPECT_EQ(total(devices, need(3)), "3 GPUs requested; this machine has 1");
  EXPECT_EQ(
      total(devices, need(1, 40 * kGi)),
      "40 GiB of GPU memory on one GPU requested; the largest GPU of this machine has 32 GiB");
  EXPECT_EQ(shortage(devices, need(2, 20 * kGi)),
            (Said{Known::gpu_mem, "requested 20 GiB of each of 2 devices, the freest has 32 GiB"}));
  EXPECT_EQ(shortage(devices, need(1, 0, 14)),
            (Said{Known::gpu_slots, "requested 14 of one device, the freest has 13"}));
  EXPECT_EQ(total(devices, need(1, 0, 0, {31, 99})),
            "1 GPU with 31 or 99 slots requested; this machine has none");
  EXPECT_EQ(total({device(0, 0)}, need(1, kGi)),
            "1 GiB of GPU memory on one GPU requested; the largest GPU of this machine has none "
            "(the devices do not report it)");
  EXPECT_EQ(total({}, need(1, kGi)), "1 GPU requested; this machine has none");
}

TEST(DeviceShares, ATaskSeesItsDevicesByUuidAndNoOthers) {
  EXPECT_EQ(visibility(std::vector{device(3, kGi), device(5, kGi)}),
            (Variables{{"CUDA_VISIBLE_DEVICES", "GPU-3,GPU-5"},
                       {"NVIDIA_VISIBLE_DEVICES", "GPU-3,GPU-5"},
                       {"ROCR_VISIBLE_DEVICES", ""}}));
  EXPECT_EQ(visibility({}), (Variables{{"CUDA_VISIBLE_DEVICES", ""},
                                       {"NVIDIA_VISIBLE_DEVICES", "void"},
                                       {"ROCR_VISIBLE_DEVICES", ""}}));
  DeviceShare amd = device(1, kGi);
  amd.vendor = topology::Vendor::amd;
  EXPECT_EQ(visibility(std::vector{amd}), (Variables{{"ROCR_VISIBLE_DEVICES", "GPU-1"}}))
      << "HIP reads CUDA's variable too";
  amd.uuid = "gpu-1";
  EXPECT_EQ(visibility(std::vector{amd}), (Variables{{"ROCR_VISIBLE_DEVICES", "1"}}));
}

TEST(DeviceShares, OnlyThoseThatTheProcessItselfMayUse) {
  std::vector<DeviceShare> shares;
  for (int i = 0; i < 4; ++i) shares.push_back(device(i, kGi));
  shares[1].uuid = "GPU-abcdef";
  DeviceShare amd = device(4, kGi);
  amd.vendor = topology::Vendor::amd;
  shares.push_back(amd);
  const auto seen = [&](std::optional<std::string> cuda, std::optional<std::string> rocr = {}) {
    return indices(visible_ones(shares, {.cuda = cuda, .nvidia = {}, .rocr = rocr}));
  };
  EXPECT_EQ(seen({}), (Indices{0, 1, 2, 3, 4}));
  EXPECT_EQ(seen("2,0"), (Indices{0, 2, 4}));
  EXPECT_EQ(seen("GPU-ab, GPU-3"), (Indices{1, 3, 4}));
  EXPECT_EQ(seen("2,nonsense,0"), (Indices{2, 4})) << "up to the first that is none";
  EXPECT_EQ(seen(""), Indices{4});
  EXPECT_EQ(seen("-1"), Indices{4});
  EXPECT_EQ(seen("NoDevFiles"), Indices{4}) << "what a batch system says to a job without";
  EXPECT_EQ(seen({}, "0"), (Indices{0, 1, 2, 3, 4})) << "each vendor counts its own";
  EXPECT_EQ(seen({}, ""), (Indices{0, 1, 2, 3}));
}

TEST(DeviceShares, OnlyThoseThatAContainersVariableNames) {
  std::vector<DeviceShare> shares;
  for (int i = 0; i < 4; ++i) shares.push_back(device(i, kGi));
  const auto seen = [&](const char* nvidia, std::optional<std::string> cuda = {}) {
    return indices(visible_ones(shares, {.cuda = cuda, .nvidia = nvidia, .rocr = {}}));
  };
  EXPECT_EQ(seen("all"), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(seen("1,3"), (Indices{1, 3}));
  EXPECT_EQ(seen("GPU-2"), Indices{2});
  for (const auto* none : {"none", "void", ""}) EXPECT_EQ(seen(none), Indices{}) << none;
  EXPECT_EQ(seen("1,3", "3"), Indices{3}) << "both count all of them";
  EXPECT_EQ(seen("all", ""), Indices{});
}

TEST(DeviceShares, TheSmallestAcceptableWholeOnesComeFirst) {
  std::vector free{device(0, 80 * kGi), device(1, 16 * kGi)};
  free[0].size = free[0].slots = 99;
  EXPECT_EQ(indices(choose_devices(free, need(1, 0, 0, {13, 31, 99}), nullptr)), Indices{1});
  EXPECT_EQ(indices(choose_devices(free, need(1, 0, 0, {31, 99}), nullptr)), Indices{0});
  EXPECT_EQ(indices(choose_devices(free, need(2, 0, 0, {13, 99}), nullptr)), (Indices{0, 1}));
}

TEST(DeviceShares, OnlyThoseOfSoMuchMemoryInAllAndTheSmallestOfThese) {
  std::vector free{device(0, 80 * kGi), device(1, 16 * kGi), device(2, 40 * kGi)};
  EXPECT_EQ(indices(choose_devices(free, need(1, {.memory_min = 30 * kGi}), nullptr)), Indices{2});
  EXPECT_EQ(indices(choose_devices(free, need(2, {.memory_min = 30 * kGi}), nullptr)),
            (Indices{0, 2}));
  EXPECT_TRUE(choose_devices(free, need(3, {.memory_min = 30 * kGi}), nullptr).empty());
  free[2].memory = 5 * kGi;
  free[2].whole = false;
  EXPECT_EQ(indices(choose_devices(free, need(1, {.memory_min = 30 * kGi}), nullptr)), Indices{0});
  EXPECT_EQ(indices(choose_devices(free, need(1, {.memory_min = 30 * kGi}, 4 * kGi), nullptr)),
            Indices{2})
      << "beside gpu_mem a part of such a one";
  EXPECT_EQ(indices(choose_devices(free, need(1, {.memory_min = 50 * kGi}, 4 * kGi), nullptr)),
            Indices{0});
  EXPECT_TRUE(
      choose_devices(std::vector{device(0, 0)}, need(1, {.memory_min = 1}), nullptr).empty())
      << "what is not told is not taken for enough";
}

TEST(DeviceShares, TheRequiredAreAmongThem) {
  const auto topology = *topology::known_machine("dgx1-v100");
  const auto links = *DeviceLinks::make(topology);
  auto free = shares_of(topology);
  EXPECT_EQ(indices(choose_devices(free, need(2, {.required = {"5", "gpu-1"}}), links.get())),
            (Indices{1, 5}));
  EXPECT_EQ(indices(choose_devices(free, need(1, {.required = {"5"}}, kGi), links.get())),
            Indices{5});
  const auto best = choose_devices(free, need(2, {.required = {"5"}}), links.get());
  EXPECT_EQ(indices(best).size(), 2U);
  EXPECT_EQ(best[1].index == 5 || best[0].index == 5, true);
  free[5].whole = false;
  EXPECT_TRUE(choose_devices(free, need(2, {.required = {"5"}}), links.get()).empty());
  EXPECT_TRUE(choose_devices(free, need(2, {.required = {"9"}}), links.get()).empty());
}

TEST(DeviceShares, APolicyWithGroupsTakesOnlyWholeGroups) {
  const auto topology = *topology::known_machine("dgx1-v100");
  const auto links = *DeviceLinks::make(topology);
  auto free = shares_of(topology);
  const DeviceSelection volta{.policy = placement::PolicyKind::static_dgx1_volta};
  EXPECT_EQ(indices(choose_devices(free, need(2, volta), links.get())), (Indices{0, 3}));
  EXPECT_TRUE(choose_devices(free, need(3, volta), links.get()).empty());
  EXPECT_EQ(shortage_of_total(free, need(3, volta), "box-1"),
            "3 GPUs requested as a group of gpu_policy static-dgx1-volta; box-1 has no such group");
  free[0].whole = free[4].whole = false;
  EXPECT_TRUE(choose_devices(free, need(4, volta), links.get()).empty());
  EXPECT_EQ(indices(choose_devices(free, need(2, volta), links.get())), (Indices{1, 2}));
  EXPECT_EQ(indices(choose_devices(free, need(2, {.policy = placement::PolicyKind::simple}),
                                   links.get())),
            (Indices{1, 2}));
}

TEST(DeviceShares, AShortageOfSelectedOnesIsNamed) {
  std::vector devices{device(0, 32 * kGi), device(1, 16 * kGi)};
  const auto said = [&](const DeviceNeed& wanted, bool total) {
    return total ? shortage_of_total(devices, wanted, "this machine")
                 : shortage(devices, wanted).second;
  };
  EXPECT_EQ(said(need(1, {.memory_min = 40 * kGi}), true),
            "1 GPU with a gpu_mem_min of 40 GiB requested; this machine has none; the largest has "
            "32 GiB");
  EXPECT_EQ(said(need(2, {.slot_sizes = {13, 31}, .memory_min = 20 * kGi}), true),
            "2 GPUs with 13 or 31 slots and a gpu_mem_min of 20 GiB requested; this machine has 1");
  EXPECT_EQ(said(need(1, {.required = {"7"}}), true),
            "gpu_require: device 7 is not a device of this machine");
  EXPECT_EQ(said(need(1, {.memory_min = 20 * kGi, .required = {"1"}}), true),
            "gpu_require: device 1 is not of the requested size");
  devices[0].whole = false;
  EXPECT_EQ(said(need(1, {.memory_min = 20 * kGi}), false),
            "requested 1 with a gpu_mem_min of 20 GiB, free 0");
  EXPECT_EQ(said(need(1, {.required = {"0"}}), false),
            "requested device 0 (gpu_require), which is in use, free 1");
}

/// The sizes from the smallest up, then the value by the objective: the less, the better.
auto rank_of(const placement::Chooser& chooser, const std::vector<DeviceShare>& chosen,
             placement::Objective objective, bool by_size) {
  std::vector<std::pair<int, std::int64_t>> sizes;
  placement::DeviceSet set = 0;
  for (const auto& share : chosen) {
    if (by_size) sizes.emplace_back(share.size, share.full_memory / kGi);
    set |= placement::DeviceSet{1} << share.index;
  }
  std::ranges::sort(sizes);
  const auto value = chooser.value(set, objective);
  return std::tuple(sizes, -value.first, -value.second);
}

placement::Chooser chooser_of(const topology::Topology& topology) {
  std::vector<std::int32_t> scores;
  for (std::size_t a = 0; a < topology.devices.size(); ++a)
    for (std::size_t b = 0; b < topology.devices.size(); ++b)
      scores.push_back(a == b ? 0 : topology::score(topology.link(a, b)));
  return *placement::Chooser::make(scores, static_cast<int>(topology.devices.size()));
}

DeviceSelection random_selection(Rng& rng, std::span<const int> sizes, std::int64_t count) {
  DeviceSelection selection;
  if (rng.below(2) == 0)
    selection.slot_sizes = {sizes[rng.below(sizes.size())], sizes[rng.below(sizes.size())]};
  if (rng.below(2) == 0) selection.memory_min = static_cast<std::int64_t>(rng.below(80)) * kGi;
  selection.objective = static_cast<placement::Objective>(rng.below(placement::kObjectives));
  const auto first = rng.below(8);
  for (std::uint64_t i = 0; i < rng.below(static_cast<std::uint64_t>(count) + 1); ++i)
    selection.required.push_back(fmt::format("{}{}", i == 0 ? "gpu-" : "", (first + i) % 8));
  return selection;
}

/// Every set of the size, against what is chosen: with the required ones, of the smallest cards
/// the best joined.
TEST(DeviceShares, NoOtherWholeOnesWouldBeSmallerOrBetterJoined) {
  const auto topology = *topology::known_machine("dgx1-v100");
  const auto links = *DeviceLinks::make(topology);
  const auto chooser = chooser_of(topology);
  constexpr std::array kSizes{7, 13, 99};
  Rng rng(5);
  int found = 0;
  for (int round = 0; round < 5'000; ++round) {
    auto free = shares_of(topology);
    for (auto& share : free) {
      share.size = share.slots = kSizes[rng.below(kSizes.size())];
      share.memory = share.full_memory = static_cast<std::int64_t>(1 + rng.below(3)) * 20 * kGi;
      share.whole = rng.below(5) != 0;
    }
    const auto count = static_cast<std::int64_t>(1 + rng.below(4));
    const DeviceSelection selection = random_selection(rng, kSizes, count);
    const auto names = [&](const std::string& name, const DeviceShare& share) {
      return name == share.uuid || name == fmt::format("{}", share.index);
    };
    const auto is_allowed = [&](const DeviceShare& share) {
      const auto& sizes = selection.slot_sizes;
      return share.whole && share.full_memory >= selection.memory_min &&
             (sizes.empty() || std::ranges::find(sizes, share.size) != sizes.end());
    };
    const bool by_size = !selection.slot_sizes.empty() || selection.memory_min > 0;
    std::vector<DeviceShare> best;
    for (unsigned set = 0; set < 1U << free.size(); ++set) {
      if (std::popcount(set) != count) continue;
      std::vector<DeviceShare> tried;
      for (std::size_t i = 0; i < free.size(); ++i)
        if ((set >> i & 1U) != 0) tried.push_back(free[i]);
      const bool has_required = std::ranges::all_of(selection.required, [&](const auto& name) {
        return std::ranges::any_of(tried, [&](const auto& share) { return names(name, share); });
      });
      if (!has_required || !std::ranges::all_of(tried, is_allowed)) continue;
      const auto rank = [&](const auto& each) {
        return rank_of(chooser, each, selection.objective, by_size);
      };
      if (best.empty() || rank(tried) < rank(best)) best = tried;
    }
    const auto got = choose_devices(free, need(count, selection), links.get());
    ASSERT_EQ(got.empty(), best.empty());
    if (best.empty()) continue;
    ++found;
    ASSERT_EQ(rank_of(chooser, got, selection.objective, by_size),
              rank_of(chooser, best, selection.objective, by_size));
  }
  EXPECT_GT(found, 500);
}

/// Best fit by trying them all, against what is chosen.
TEST(DeviceShares, NoOtherDeviceWouldBeFilledBetter) {
  Rng rng(11);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<DeviceShare> free;
    for (int i = 0; i < 8; ++i)
      free.push_back(device(i, static_cast<std::int64_t>(rng.below(20)) * kGi,
                            static_cast<int>(rng.below(14)), rng.below(3) == 0));
    const auto want = need(1, static_cast<std::int64_t>(1 + rng.below(16)) * kGi,
                           static_cast<std::int64_t>(rng.below(6)));
    const DeviceShare* best = nullptr;
    for (const auto& share : free)
      if (share.memory >= want.memory && share.slots >= want.slots &&
          (best == nullptr ||
           std::pair(share.memory, share.slots) < std::pair(best->memory, best->slots)))
        best = &share;
    const auto got = choose_devices(free, want, nullptr);
    ASSERT_EQ(got.empty(), best == nullptr);
    if (best == nullptr) continue;
    const auto& chosen = free[static_cast<std::size_t>(got[0].index)];
    ASSERT_EQ(std::pair(chosen.memory, chosen.slots), std::pair(best->memory, best->slots));
  }
}

}  // namespace
}  // namespace berth::machine
