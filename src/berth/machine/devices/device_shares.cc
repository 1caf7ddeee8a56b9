#include "berth/machine/devices/device_shares.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "berth/base/checked.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::machine {
namespace {

std::int64_t full_memory(const DeviceShare& device) {
  return device.whole ? std::max(device.memory, device.full_memory) : device.full_memory;
}

bool is_called(const DeviceShare& device, std::string_view name) {
  return device.uuid == name || fmt::format("{}", device.index) == name;
}

bool is_required(const DeviceShare& device, const DeviceNeed& need) {
  return std::ranges::any_of(need.selection.required,
                             [&](const std::string& name) { return is_called(device, name); });
}

bool fits(const DeviceShare& device, const DeviceNeed& need) {
  if (!accepts(need.selection, device)) return false;
  return need.shared() ? device.memory >= need.memory && device.slots >= need.slots : device.whole;
}

/// What a part of the device leaves of it: the least is the best fit.
auto left_of(const DeviceShare& device, const DeviceNeed& need) {
  return std::tuple(device.memory - need.memory, device.slots - need.slots, device.whole);
}

placement::DeviceSet bit(std::size_t place) {
  return placement::DeviceSet{1} << place;
}

using Fitting = std::vector<const DeviceShare*>;

/// Of those that one part fits, those that it fills best.
void keep_best_fit(Fitting& fitting, const DeviceNeed& need) {
  const auto left = [&](const DeviceShare* device) { return left_of(*device, need); };
  const auto least = left(*std::ranges::min_element(fitting, {}, left));
  std::erase_if(fitting, [&](const DeviceShare* device) { return left(device) != least; });
}

/// By slots, then by memory; in GiB, as cards of one kind may differ in less.
auto size_of(const DeviceShare& device) {
  return std::pair(device.size, full_memory(device) >> 30);
}

placement::DeviceSet required_ones(const Fitting& fitting, const DeviceNeed& need) {
  placement::DeviceSet required = 0;
  for (std::size_t i = 0; i < fitting.size(); ++i)
    if (is_required(*fitting[i], need)) required |= bit(i);
  return required;
}

/// Leaves the required ones and the `count` smallest, with all that are as large as the largest of
/// these; returns the required ones and those that are smaller.
placement::DeviceSet keep_smallest(Fitting& fitting, const DeviceNeed& need) {
  std::vector<std::pair<int, std::int64_t>> sizes;  // of those that are not required
  for (const DeviceShare* device : fitting)
    if (!is_required(*device, need)) sizes.push_back(size_of(*device));
  std::ranges::sort(sizes);
  const auto further = static_cast<std::size_t>(need.count) - (fitting.size() - sizes.size());
  std::erase_if(fitting, [&](const DeviceShare* device) {
    return !is_required(*device, need) && (further == 0 || size_of(*device) > sizes[further - 1]);
  });
  placement::DeviceSet must = 0;
  for (std::size_t i = 0; i < fitting.size(); ++i)
    if (is_required(*fitting[i], need) || size_of(*fitting[i]) < sizes[further - 1]) must |= bit(i);
  return must;
}

/// `must`, and the first of `devices` beside it.
placement::DeviceSet first_ones(std::size_t devices, placement::DeviceSet must, int count) {
  placement::DeviceSet chosen = must;
  for (std::size_t i = 0; i < devices && std::popcount(chosen) < count; ++i) chosen |= bit(i);
  return chosen;
}

DeviceShare share_of(DeviceShare device, const DeviceNeed& need) {
  if (!need.shared()) return device;
  device.memory = need.memory;
  device.slots = static_cast<int>(need.slots);
  device.whole = false;
  return device;
}

/// Those that the list names, up to its first word that names none.
std::vector<std::string> named_ones(std::span<const std::string> uuids, std::string_view list) {
  constexpr std::size_t kShortest = 5;  // "GPU-3": fewer letters are no beginning of one UUID
  std::vector<std::string> named;
  for (const auto word : split(list, ',')) {
    const std::string_view name = trim(word);
    const auto number = parse_integer(name);
    const auto found = std::ranges::find_if(uuids, [&](const std::string& uuid) {
      return number ? &uuid - uuids.data() == *number
                    : name.size() >= kShortest && uuid.starts_with(name);
    });
    if (found == uuids.end()) break;
    named.push_back(*found);
  }
  return named;
}

/// "13 or 31"
std::string sizes_text(const std::vector<int>& sizes) {
  std::vector<std::string> texts;
  for (const int size : sizes) texts.push_back(fmt::format("{}", size));
  return join(texts, " or ");
}

/// " with 13 or 31 slots and a gpu_mem_min of 30 GiB"; "": any device will do.
std::string sizes_of(const DeviceNeed& need) {
  const DeviceSelection& selection = need.selection;
  std::vector<std::string> withs;
  if (!selection.slot_sizes.empty()) withs.push_back(sizes_text(selection.slot_sizes) + " slots");
  if (selection.memory_min > 0)
    withs.push_back("a gpu_mem_min of " +
                    requested_amount(name(Known::gpu_mem), selection.memory_min));
  return withs.empty() ? "" : " with " + join(withs, " and ");
}

/// Returns why one of the required devices is not available, the first one; "": all are. `machine`
/// is the name of the machine whose devices these are, or "" if they are what is free now.
std::string missing_required(std::span<const DeviceShare> devices, const DeviceNeed& need,
                             std::string_view machine) {
  constexpr fmt::format_string<std::string, std::string> kSameDevice =
      "requested devices {} and {} (gpu_require), which are the same device";
  constexpr fmt::format_string<std::string, std::string> kSameDeviceOfTotal =
      "gpu_require: {} and {} are the same device";
  std::map<std::string_view, std::string_view> names;  // of the devices, by UUID
  for (const std::string& name : need.selection.required) {
    const auto device = std::ranges::find_if(
        devices, [&](const DeviceShare& each) { return is_called(each, name); });
    const bool is_one = device != devices.end();
    if (is_one)
      if (const auto [other, is_new] = names.emplace(device->uuid, name); !is_new)
        return fmt::format(machine.empty() ? kSameDevice : kSameDeviceOfTotal, clip(other->second),
                           clip(name));
    if (is_one && fits(*device, need)) continue;
    const bool is_held = is_one && machine.empty() && accepts(need.selection, *device);
    if (!machine.empty())
      return fmt::format("gpu_require: device {} is not {}{}", clip(name),
                         is_one ? "of the requested size" : "a device of ", is_one ? "" : machine);
    return fmt::format("requested device {} (gpu_require), which is {}", clip(name),
                       !is_one   ? "not a device of this machine"
                       : is_held ? "in use"
                                 : "not of the requested size");
  }
  return "";
}

/// A part of each device that too few devices have.
struct MissingPart {
  Known known = Known::gpu_mem;
  std::int64_t requested = 0, most = 0;  // of one device
};
std::optional<MissingPart> missing_part(std::span<const DeviceShare> devices,
                                        const DeviceNeed& need) {
  for (const auto& [known, wanted] :
       {std::pair(Known::gpu_mem, need.memory), std::pair(Known::gpu_slots, need.slots)}) {
    if (wanted == 0) continue;
    std::int64_t enough = 0, most = 0;
    for (const DeviceShare& device : devices) {
      if (!accepts(need.selection, device)) continue;
      const std::int64_t amount = known == Known::gpu_mem ? device.memory : device.slots;
      enough += amount >= wanted ? 1 : 0;
      most = std::max(most, amount);
    }
    if (enough < need.count) return MissingPart{known, wanted, most};
  }
  return std::nullopt;
}

std::int64_t count_accepted(std::span<const DeviceShare> devices, const DeviceNeed& need) {
  return std::ranges::count_if(
      devices, [&](const DeviceShare& device) { return accepts(need.selection, device); });
}

std::int64_t count_fitting(std::span<const DeviceShare> devices, const DeviceNeed& need) {
  return std::ranges::count_if(devices,
                               [&](const DeviceShare& device) { return fits(device, need); });
}

constexpr std::string_view kNotReported = " (the devices do not report it)";

}  // namespace

bool accepts(const DeviceSelection& selection, const DeviceShare& device) {
  const auto& sizes = selection.slot_sizes;
  if (!sizes.empty() && std::ranges::find(sizes, device.size) == sizes.end()) return false;
  const bool is_seen_by_its_lender = !device.whole && device.full_memory == 0;
  return is_seen_by_its_lender || full_memory(device) >= selection.memory_min;
}

std::vector<DeviceShare> shares_of(const topology::Topology& topology,
                                   const std::vector<std::pair<std::string, int>>& slots) {
  std::vector<DeviceShare> devices;
  for (const topology::Device& device : topology.devices) {
    const int size = topology::slots_of(device.model, slots);
    devices.push_back({device.uuid, device.index, device.numa, device.memory, size, size, true,
                       device.vendor, device.memory});
  }
  std::ranges::sort(devices, {}, &DeviceShare::index);
  return devices;
}

std::vector<DeviceShare> visible_ones(std::vector<DeviceShare> shares,
                                      const VisibleDevices& visible) {
  const std::vector<DeviceShare> all = shares;
  const auto hide = [&](topology::Vendor vendor, const std::optional<std::string>& list) {
    if (!list) return;
    std::vector<std::string> own;  // a vendor's driver counts only its own devices
    for (const DeviceShare& share : all)
      if (share.vendor == vendor) own.push_back(share.uuid);
    const std::vector<std::string> seen = named_ones(own, *list);
    std::erase_if(shares, [&](const DeviceShare& share) {
      return share.vendor == vendor && std::ranges::find(seen, share.uuid) == seen.end();
    });
  };
  hide(topology::Vendor::nvidia, visible.cuda);
  if (visible.nvidia != "all") hide(topology::Vendor::nvidia, visible.nvidia);
  hide(topology::Vendor::amd, visible.rocr);
  return shares;
}

Result<std::shared_ptr<DeviceLinks>> DeviceLinks::make(const topology::Topology& topology) {
  std::vector<std::string> uuids;
  for (const topology::Device& device : topology.devices) uuids.push_back(device.uuid);
  BERTH_ASSIGN(auto chooser, placement::Chooser::make(topology));
  return std::shared_ptr<DeviceLinks>(new DeviceLinks(std::move(uuids), std::move(chooser)));
}

Result<placement::DeviceSet> DeviceLinks::choose(std::span<const DeviceShare* const> devices,
                                                 placement::DeviceSet must, int count,
                                                 const DeviceSelection& selection) {
  std::vector<std::size_t> places;  // of each device among uuids_
  placement::Question question{.count = count, .objective = selection.objective};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto found = std::ranges::find(uuids_, devices[i]->uuid);
    if (found == uuids_.end())
      return fail(ErrorKind::not_found, "the links of {} are not known", devices[i]->uuid);
    places.push_back(static_cast<std::size_t>(found - uuids_.begin()));
    question.available |= bit(places[i]);
    if ((must & bit(i)) != 0) question.required |= bit(places[i]);
  }
  BERTH_ASSIGN(const auto answer, chooser_.choose(selection.policy, question));
  placement::DeviceSet chosen = 0;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if ((answer.devices & bit(places[i])) != 0) chosen |= bit(i);
  return chosen;
}

DeviceNeed device_need(const Resources& wanted, DeviceSelection selection) {
  DeviceNeed need{wanted.get(Known::gpu), wanted.get(Known::gpu_mem), wanted.get(Known::gpu_slots),
                  std::move(selection)};
  if (need.shared()) need.count = std::max<std::int64_t>(need.count, 1);
  return need;
}

Resources charged(const Resources& wanted) {
  const DeviceNeed need = device_need(wanted);
  if (!need.shared()) return wanted;
  Resources result = wanted;
  result.set(Known::gpu, 0);
  for (const auto& [known, amount] :
       {std::pair(Known::gpu_mem, need.memory), {Known::gpu_slots, need.slots}}) {
    const auto sum = checked_mul(amount, need.count);
    result.set(known, sum.value_or(std::numeric_limits<std::int64_t>::max()));
  }
  return result;
}

std::vector<DeviceShare> choose_devices(std::span<const DeviceShare> free, const DeviceNeed& need,
                                        DeviceLinks* links) {
  Fitting fitting;
  for (const DeviceShare& device : free)
    if (fits(device, need)) fitting.push_back(&device);
  if (need.count == 0 || std::cmp_less(fitting.size(), need.count)) return {};
  const auto count = static_cast<int>(need.count);
  const DeviceSelection& selection = need.selection;
  placement::DeviceSet must = required_ones(fitting, need);
  if (std::popcount(must) > count || !missing_required(free, need, "").empty()) return {};
  if (need.shared() && count == 1 && must == 0) keep_best_fit(fitting, need);
  if (!need.shared() && selection.is_by_size() && !selection.is_by_group())
    must = keep_smallest(fitting, need);
  auto chosen = links == nullptr ? fail(ErrorKind::not_found, "no links")
                                 : links->choose(fitting, must, count, selection);
  if (!chosen && chosen.error().kind != ErrorKind::not_found) return {};
  if (!chosen) chosen = first_ones(fitting.size(), must, count);
  std::vector<DeviceShare> shares;
  for (std::size_t i = 0; i < fitting.size(); ++i)
    if ((*chosen & bit(i)) != 0) shares.push_back(share_of(*fitting[i], need));
  return shares;
}

std::pair<Known, std::string> shortage(std::span<const DeviceShare> free, const DeviceNeed& need) {
  const auto gpu = [](const std::string& requested, std::int64_t count) {
    return std::pair(Known::gpu, fmt::format("{}, free {}", requested, count));
  };
  const std::string requested = fmt::format("requested {}{}", need.count, sizes_of(need));
  const auto sized = count_accepted(free, need);
  const auto fit = count_fitting(free, need);
  if (sized < need.count && need.selection.is_by_size()) return gpu(requested, sized);
  if (sized >= need.count)
    if (const auto part = missing_part(free, need)) {
      const std::string_view resource = name(part->known);
      return {
          part->known,
          fmt::format(
              "requested {} of {}, the freest has {}", requested_amount(resource, part->requested),
              need.count == 1 ? "one device" : fmt::format("each of {} devices", need.count),
              format_amount(resource, part->most))};
    }
  if (const auto missing = missing_required(free, need, ""); !missing.empty())
    return gpu(missing, fit);
  if (fit < need.count) return gpu(requested, fit);
  const auto& required = need.selection.required;
  return gpu(
      fmt::format("requested {}{} as a group of gpu_policy {}, which has no such free group here",
                  need.count, required.empty() ? "" : " with " + join(required, ","),
                  placement::name(need.selection.policy)),
      fit);
}

std::string shortage_of_total(std::span<const DeviceShare> devices, const DeviceNeed& need,
                              std::string_view machine) {
  const auto sentence = [&](const std::string& requested, std::int64_t count) {
    return fmt::format("{} requested; {} has {}", requested, machine,
                       available_text(name(Known::gpu), count));
  };
  const std::string gpus = requested_text(name(Known::gpu), need.count);
  const auto sized = count_accepted(devices, need);
  const auto fit = count_fitting(devices, need);
  if (sized < need.count && need.selection.is_by_size() && !devices.empty()) {
    std::int64_t most = 0;
    for (const DeviceShare& device : devices) most = std::max(most, full_memory(device));
    std::string text = sentence(gpus + sizes_of(need), sized);
    if (need.selection.memory_min > most)
      text += most == 0 ? std::string(kNotReported)
                        : fmt::format("; the largest has {}", format_bytes(most));
    return text;
  }
  if (sized >= need.count)
    if (const auto part = missing_part(devices, need)) {
      const std::string_view resource = name(part->known);
      return fmt::format("{} on {} requested; the largest GPU of {} has {}{}",
                         requested_text(resource, part->requested),
                         need.count == 1 ? "one GPU" : fmt::format("each of {}", gpus), machine,
                         available_text(resource, part->most), part->most == 0 ? kNotReported : "");
    }
  if (const auto missing = missing_required(devices, need, machine); !missing.empty())
    return missing;
  if (fit < need.count) return sentence(gpus, fit);
  const auto& required = need.selection.required;
  return fmt::format("{}{} requested as a group of gpu_policy {}; {} has no such group", gpus,
                     required.empty() ? "" : " with " + join(required, ","),
                     placement::name(need.selection.policy), machine);
}

std::vector<std::pair<std::string, std::string>> visibility(std::span<const DeviceShare> devices) {
  std::string nvidia, amd;
  for (const DeviceShare& device : devices) {
    const bool is_amd = device.vendor == topology::Vendor::amd;
    const bool made_up = device.uuid.starts_with("gpu-");
    std::string& list = is_amd ? amd : nvidia;
    if (!list.empty()) list += ',';
    list += is_amd && made_up ? fmt::format("{}", device.index) : device.uuid;
  }
  // HIP takes CUDA_VISIBLE_DEVICES for its own: a task with AMD's devices gets none, not an empty
  // one.
  if (!amd.empty()) return {{"ROCR_VISIBLE_DEVICES", amd}};
  return {{"CUDA_VISIBLE_DEVICES", nvidia},
          {"NVIDIA_VISIBLE_DEVICES", nvidia.empty() ? "void" : nvidia},
          {"ROCR_VISIBLE_DEVICES", ""}};
}

}  // namespace berth::machine
