#include "berth/machine/device_shares.h"

#include <algorithm>
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
                                      const std::optional<std::string>& nvidia,
                                      const std::optional<std::string>& amd) {
  const auto hide = [&](topology::Vendor vendor, const std::string& variable) {
    std::vector<std::string> own;  // a vendor's driver counts only its own devices
    for (const DeviceShare& share : shares)
      if (share.vendor == vendor) own.push_back(share.uuid);
    const std::vector<std::string> seen = named_ones(own, variable);
    std::erase_if(shares, [&](const DeviceShare& share) {
      return share.vendor == vendor && std::ranges::find(seen, share.uuid) == seen.end();
    });
  };
  if (nvidia) hide(topology::Vendor::nvidia, *nvidia);
  if (amd) hide(topology::Vendor::amd, *amd);
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

std::vector<std::size_t> DeviceLinks::choose(std::span<const DeviceShare* const> devices,
                                             int count) {
  std::vector<std::size_t> chosen;
  std::vector<std::size_t> places;  // of each device among uuids_
  placement::DeviceSet available = 0;
  for (const DeviceShare* device : devices) {
    const auto found = std::ranges::find(uuids_, device->uuid);
    if (found == uuids_.end()) break;
    places.push_back(static_cast<std::size_t>(found - uuids_.begin()));
    available |= placement::DeviceSet{1} << places.back();
  }
  placement::DeviceSet taken = 0;
  if (places.size() == devices.size())
    if (const auto answer = chooser_.choose(
            placement::PolicyKind::packed, {.available = available, .required = 0, .count = count}))
      taken = answer->devices;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (taken == 0 ? i < static_cast<std::size_t>(count) : (taken >> places[i] & 1) != 0)
      chosen.push_back(i);
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
  if (need.shared() && need.count == 1) {
    const auto least = std::ranges::min(
        fitting, {}, [&](const DeviceShare* device) { return left_of(*device, need); });
    std::erase_if(fitting, [&](const DeviceShare* device) {
      return left_of(*device, need) != left_of(*least, need);
    });
  }
  std::vector<DeviceShare> shares;
  const auto count = static_cast<int>(need.count);
  if (links != nullptr) {
    for (const std::size_t at : links->choose(fitting, count))
      shares.push_back(share_of(*fitting[at], need));
  } else {
    for (int i = 0; i < count; ++i)
      shares.push_back(share_of(*fitting[static_cast<std::size_t>(i)], need));
  }
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
