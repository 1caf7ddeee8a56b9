// A selection: which devices a request accepts, beside its amounts, and how it chooses among them.
// Pure.
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

/// The default accepts every device and takes the devices that are best joined.
struct DeviceSelection {
  std::vector<int> slot_sizes = {};  // the slots that a device may have; empty: any
  std::int64_t memory_min = 0;       // bytes that a device has at least, held or free
  // For several whole devices, or parts of several:
  placement::PolicyKind policy = placement::PolicyKind::packed;
  placement::Objective objective = placement::Objective::sum;
  std::vector<std::string> required = {};  // indices or UUIDs of devices that must be among them
  bool operator==(const DeviceSelection&) const = default;

  /// Whether it rejects devices by their size.
  bool is_by_size() const { return !slot_sizes.empty() || memory_min > 0; }
  /// Whether the policy takes only whole groups from a list of its own.
  bool is_by_group() const;
};

/// The names in "0,2-5" or "GPU-a,GPU-b". A UUID has dashes too: `is_device` says whether what
/// looks like a range is a device. Errors: invalid for a malformed range.
Result<std::vector<std::string>> device_names(
    std::string_view list, const std::function<bool(std::string_view)>& is_device = {});
/// Adds the names in the list that are not yet among `required`. Errors: invalid.
Status add_required(std::string_view list, std::vector<std::string>& required);

/// Whether the request takes a part of a device, so that others may have the rest.
bool takes_part(const Resources& resources);
/// Adds the implied amount of `gpu`: one with a `memory_min`, or as many as are required; but not
/// if `none`, a gpu of 0 that was asked for explicitly. Errors: invalid for fewer devices than
/// required, or a selection or part of no device.
Status imply_devices(const DeviceSelection& selection, bool none, Resources& resources);

/// What differs from the default, for people, behind amounts: ", gpu_mem_min 28 GiB, gpu_policy
/// simple".
std::string text_of(const DeviceSelection& selection);
/// What differs from the default, by the keys of `resources` in files: {"gpu_mem_min":30000000000}.
std::string to_json(const DeviceSelection& selection);
/// Errors: corrupt if to_json() did not write it.
Result<DeviceSelection> selection_of_json(std::string_view text);
/// Reads a key of `resources` and its value; false: the key does not belong to a selection. Errors:
/// invalid, with file, line and key.
Result<bool> read_selection(std::string_view key, const Field& value, DeviceSelection& selection);

}  // namespace berth::machine
