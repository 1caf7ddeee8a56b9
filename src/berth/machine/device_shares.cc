#include "berth/machine/device_shares.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "berth/base/checked.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::machine {
namespace {

bool acceptable(const DeviceShare& device, const DeviceNeed& need) {
  return need.sizes.empty() || std::ranges::find(need.sizes, device.size) != need.sizes.end();
}

bool fits(const DeviceShare& device, const DeviceNeed& need) {
  if (!acceptable(device, need)) return false;
  return need.shared() ? device.memory >= need.memory && device.slots >= need.slots : device.whole;
}

/// What a part of the device leaves of it: the least is the best fit.
auto left_of(const DeviceShare& device, const DeviceNeed& need) {
  return std::tuple(device.memory - need.memory, device.slots - need.slots, device.whole);
}

placement::DeviceSet bit(std::size_t place) {
  return placement::DeviceSet{1} << place;
}

/// Of those that one part fits, those that it fills best.
void keep_best_fit(std::vector<const DeviceShare*>& fitting, const DeviceNeed& need) {
  const auto left = [&](const DeviceShare* device) { return left_of(*device, need); };
  const auto least = left(*std::ranges::min_element(fitting, {}, left));
  std::erase_if(fitting, [&](const DeviceShare* device) { return left(device) != least; });
}

/// Those that are no larger than the largest of the `count` smallest.
void keep_smallest(std::vector<const DeviceShare*>& fitting, std::int64_t count) {
  std::vector<int> sizes;
  for (const DeviceShare* device : fitting) sizes.push_back(device->size);
  std::ranges::sort(sizes);
  const int largest = sizes[static_cast<std::size_t>(count - 1)];
  std::erase_if(fitting, [&](const DeviceShare* device) { return device->size > largest; });
}

/// Those of which none is left over before one that is larger.
placement::DeviceSet smaller_ones(std::span<const DeviceShare* const> fitting,
                                  const DeviceNeed& need) {
  placement::DeviceSet smaller = 0;
  if (need.shared() || need.sizes.empty()) return smaller;
  const int largest = (*std::ranges::max_element(fitting, {}, [](const auto* device) {
                        return device->size;
                      }))->size;
  for (std::size_t i = 0; i < fitting.size(); ++i)
    if (fitting[i]->size < largest) smaller |= bit(i);
  return smaller;
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

}  // namespace

std::vector<DeviceShare> shares_of(const topology::Topology& topology,
                                   const std::vector<std::pair<std::string, int>>& slots) {
  std::vector<DeviceShare> devices;
  for (const topology::Device& device : topology.devices) {
    const int size = topology::slots_of(device.model, slots);
    devices.push_back(
        {device.uuid, device.index, device.numa, device.memory, size, size, true, device.vendor});
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
  std::vector<std::int32_t> scores;
  for (std::size_t a = 0; a < topology.devices.size(); ++a) {
    uuids.push_back(topology.devices[a].uuid);
    for (std::size_t b = 0; b < topology.devices.size(); ++b)
      scores.push_back(a == b ? 0 : topology::score(topology.link(a, b)));
  }
  BERTH_ASSIGN(auto chooser,
               placement::Chooser::make(scores, static_cast<int>(topology.devices.size())));
  return std::shared_ptr<DeviceLinks>(new DeviceLinks(std::move(uuids), std::move(chooser)));
}

std::optional<placement::DeviceSet> DeviceLinks::choose(std::span<const DeviceShare* const> devices,
                                                        placement::DeviceSet must, int count) {
  std::vector<std::size_t> places;  // of each device among uuids_
  placement::Question question{.count = count};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto found = std::ranges::find(uuids_, devices[i]->uuid);
    if (found == uuids_.end()) return std::nullopt;
    places.push_back(static_cast<std::size_t>(found - uuids_.begin()));
    question.available |= bit(places[i]);
    if ((must & bit(i)) != 0) question.required |= bit(places[i]);
  }
  const auto answer = chooser_.choose(placement::PolicyKind::packed, question);
  if (!answer) return std::nullopt;
  placement::DeviceSet chosen = 0;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if ((answer->devices & bit(places[i])) != 0) chosen |= bit(i);
  return chosen;
}

DeviceNeed device_need(const Resources& wanted, std::vector<int> sizes) {
  DeviceNeed need{wanted.get(Known::gpu), wanted.get(Known::gpu_mem), wanted.get(Known::gpu_slots),
                  std::move(sizes)};
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
  std::vector<const DeviceShare*> fitting;
  for (const DeviceShare& device : free)
    if (fits(device, need)) fitting.push_back(&device);
  if (need.count == 0 || std::cmp_less(fitting.size(), need.count)) return {};
  const auto count = static_cast<int>(need.count);
  if (need.shared() && count == 1) keep_best_fit(fitting, need);
  if (!need.shared() && !need.sizes.empty()) keep_smallest(fitting, need.count);
  const placement::DeviceSet must = smaller_ones(fitting, need);
  auto chosen = links == nullptr ? std::nullopt : links->choose(fitting, must, count);
  if (!chosen) chosen = first_ones(fitting.size(), must, count);
  std::vector<DeviceShare> shares;
  for (std::size_t i = 0; i < fitting.size(); ++i)
    if ((*chosen & bit(i)) != 0) shares.push_back(share_of(*fitting[i], need));
  return shares;
}

std::pair<Known, std::string> shortage(std::span<const DeviceShare> devices, const DeviceNeed& need,
                                       bool total) {
  const auto count = [&](auto has) { return std::ranges::count_if(devices, has); };
  const std::string_view there_are = total ? "the total is" : "free";
  const auto sized = count([&](const DeviceShare& device) { return acceptable(device, need); });
  if (sized < need.count && !need.sizes.empty())
    return {Known::gpu, fmt::format("wanted {} with {} slots, {} {}", need.count,
                                    sizes_text(need.sizes), there_are, sized)};
  for (const auto& [known, wanted] :
       {std::pair(Known::gpu_mem, need.memory), std::pair(Known::gpu_slots, need.slots)}) {
    if (wanted == 0 || sized < need.count) continue;
    std::int64_t enough = 0, most = 0;
    for (const DeviceShare& device : devices) {
      if (!acceptable(device, need)) continue;
      const std::int64_t amount = known == Known::gpu_mem ? device.memory : device.slots;
      enough += amount >= wanted ? 1 : 0;
      most = std::max(most, amount);
    }
    if (enough >= need.count) continue;
    const std::string_view untold =
        total && most == 0 ? " (what the devices have is not told)" : "";
    return {known,
            fmt::format(
                "wanted {} of {}, {} has {}{}", format_amount(name(known), wanted),
                need.count == 1 ? "one device" : fmt::format("each of {} devices", need.count),
                total ? "the largest" : "the freest", format_amount(name(known), most), untold)};
  }
  const auto fit = count([&](const DeviceShare& device) { return fits(device, need); });
  return {Known::gpu, fmt::format("wanted {}, {} {}", need.count, there_are, fit)};
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

std::string to_json(std::span<const DeviceShare> devices) {
  std::string text;
  for (const DeviceShare& device : devices)
    text += fmt::format(R"({}{{"uuid":{},"index":{},"memory":{},"slots":{},"whole":{}}})",
                        text.empty() ? "" : ",", json_quote(device.uuid), device.index,
                        device.memory, device.slots, device.whole);
  return "[" + text + "]";
}

}  // namespace berth::machine
