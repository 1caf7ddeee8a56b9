#include "berth/machine/devices/device_selection.h"

#include <gtest/gtest.h>

namespace berth::machine {
namespace {

TEST(DeviceSelection, IsReadBackAsItWasWritten) {
  const DeviceSelection all{.slot_sizes = {13, 31},
                            .memory_min = 30'000'000'000,
                            .policy = placement::PolicyKind::static_dgx2,
                            .objective = placement::Objective::ring,
                            .required = {"0", "GPU-a"}};
  EXPECT_EQ(*selection_of_json(to_json(all)), all);
  EXPECT_EQ(to_json(DeviceSelection{}), "{}") << "only what differs from the default";
  EXPECT_EQ(*selection_of_json("{}"), DeviceSelection{});
  EXPECT_EQ(text_of(all),
            ", gpu_slot_sizes 13,31, gpu_mem_min 27.9 GiB, gpu_policy static-dgx2, "
            "gpu_objective ring, gpu_require 0,GPU-a");
  EXPECT_EQ(text_of({}), "");
  for (const auto* wrong :
       {"[]", "3", R"({"gpu_policy":"x"})", R"({"gpu_mem_min":-1})", R"({"gpu_mem_min":"x"})",
        R"({"gpu_slot_sizes":[-1]})", R"({"gpu_slots":1})", R"({"gpu_require":{}})"})
    EXPECT_FALSE(selection_of_json(wrong)) << wrong;
}

TEST(DeviceSelection, RequiredOnesAreListedAsForPlace) {
  std::vector<std::string> required;
  EXPECT_TRUE(add_required("0, 2-4,GPU-a-1,3", required));
  EXPECT_EQ(required, (std::vector<std::string>{"0", "2", "3", "4", "GPU-a-1"}));
  EXPECT_FALSE(add_required("4-2", required));
  EXPECT_FALSE(add_required("0-99999999", required));
}

TEST(DeviceSelection, WhatLooksLikeARangeMayBeAUuid) {
  const auto is_device = [](std::string_view name) { return name == "0-1"; };
  EXPECT_EQ(*device_names("0-1,2-3", is_device), (std::vector<std::string>{"0-1", "2", "3"}));
}

TEST(DeviceSelection, AGpuOfNoneIsNone) {
  const auto refusal = [](const DeviceSelection& selection, Resources resources) {
    const auto implied = imply_devices(selection, true, resources);
    EXPECT_EQ(resources.get(Known::gpu), 0);
    return implied ? "" : implied.error().message;
  };
  EXPECT_EQ(refusal({.memory_min = 1}, {}), "gpu_mem_min: no gpu is asked for");
  EXPECT_EQ(refusal({.required = {"0"}}, {}), "gpu_require: 1 devices are more than a gpu of 0");
  Resources part;
  part.set(Known::gpu_mem, 1);
  EXPECT_EQ(refusal({}, part), "gpu_mem: no gpu is asked for");
  EXPECT_EQ(refusal({}, {}), "");
}

}  // namespace
}  // namespace berth::machine
