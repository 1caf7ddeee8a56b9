// Which devices a request accepts, beside its amounts, and how they are chosen among those. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/document.h"
#include "berth/base/result.h"
#include "berth/placement/placement.h"
#include "berth/resource/resources.h"

namespace berth::machine {

/// The default accepts every device and takes those that belong together most.
struct DeviceSelection {
  std::vector<int> slot_sizes = {};  // slots that a device may have; empty: any
  std::int64_t memory_min = 0;       // bytes that a device has at least, lent or not
  // Of several whole devices, or parts of several:
  placement::PolicyKind policy = placement::PolicyKind::packed;
  placement::Objective objective = placement::Objective::sum;
  std::vector<std::string> required = {};  // indices or UUIDs of those that must be among them
  bool operator==(const DeviceSelection&) const = default;

  /// Some devices are too small, or of the wrong size.
  bool is_by_size() const { return !slot_sizes.empty() || memory_min > 0; }
  /// The policy has groups of its own and takes only a whole one.
  bool is_by_group() const;
};

/// By the names that `berth place` takes. invalid: tells them, and the nearest.
Result<placement::PolicyKind> policy_named(std::string_view name);
Result<placement::Objective> objective_named(std::string_view name);
/// The names in "0,2-5" or "GPU-a,GPU-b". A UUID has dashes of its own: `is_device` tells of what
/// looks like a range whether it is one. invalid: a range that is none.
Result<std::vector<std::string>> device_names(
    std::string_view list, const std::function<bool(std::string_view)>& is_device = {});
/// Adds the names in the list that are not yet among `required`. invalid.
Status add_required(std::string_view list, std::vector<std::string>& required);

/// Whether others may have the rest of the device.
bool takes_part(const Resources& resources);
/// Adds the `gpu` that goes without saying: one with a `memory_min`, as many as are required; but
/// not where `none` says that a gpu of 0 was asked for in so many words. invalid: fewer devices
/// than are required, or a selection or a part of none.
Status imply_devices(const DeviceSelection& selection, bool none, Resources& resources);

/// What differs from the default, behind amounts: ", gpu_mem_min 28 GiB, gpu_policy simple".
std::string text_of(const DeviceSelection& selection);
/// What differs from the default, by the keys of `resources` in files: {"gpu_mem_min":30000000000}.
std::string to_json(const DeviceSelection& selection);
/// corrupt: not what to_json() gives.
Result<DeviceSelection> selection_of_json(std::string_view text);
/// Reads a key of `resources` and its value; false: the key is none of a selection. invalid, with
/// file, line and key.
Result<bool> read_selection(std::string_view key, const Field& value, DeviceSelection& selection);

}  // namespace berth::machine
