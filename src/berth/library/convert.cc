#include "berth/library/convert.h"

#include <algorithm>

namespace berth::library {

MachinePart part_of(const machine::Block& block) {
  MachinePart part{.resources = block.resources, .devices = parts_of(block.devices)};
  for (const CoreShare& core : block.cores)
    part.cores.push_back({core.core, core.node, core.milli});
  return part;
}

std::vector<DevicePart> parts_of(std::span<const machine::DeviceShare> shares) {
  std::vector<DevicePart> parts;
  for (const machine::DeviceShare& share : shares)
    parts.push_back({share.uuid, share.index, share.node, share.memory, share.slots, share.whole});
  return parts;
}

Result<std::vector<machine::DeviceShare>> shares_of(std::span<const DevicePart> parts,
                                                    const topology::Topology* topology) {
  std::vector<machine::DeviceShare> shares;
  for (const DevicePart& part : parts) {
    if (part.uuid.empty() || part.memory < 0 || part.slots < 0)
      return fail(ErrorKind::invalid,
                  "device '{}': expected a UUID, and at least 0 bytes and slots", part.uuid);
    machine::DeviceShare share{.uuid = part.uuid,
                               .index = part.index,
                               .node = part.node,
                               .memory = part.memory,
                               .slots = part.slots,
                               .size = part.slots,
                               .whole = part.whole,
                               .full_memory = part.memory};
    if (topology != nullptr) {
      const auto device = std::ranges::find(topology->devices, part.uuid, &topology::Device::uuid);
      if (device == topology->devices.end())
        return fail(ErrorKind::invalid, "device {}: its topology {} lacks it", part.uuid,
                    topology->name);
      share.size = topology::slots_of(device->model);
      share.vendor = device->vendor;
      share.full_memory = device->memory;
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

DeviceSelection selection_of(const machine::DeviceSelection& selection) {
  return {selection.slot_sizes, selection.memory_min, selection.policy, selection.objective,
          selection.required};
}

Result<machine::DeviceSelection> selection_of(const DeviceSelection& selection) {
  if (placement::name(selection.policy).empty())
    return fail(ErrorKind::invalid, "no such policy: {}", static_cast<int>(selection.policy));
  if (placement::name(selection.objective).empty())
    return fail(ErrorKind::invalid, "no such objective: {}", static_cast<int>(selection.objective));
  if (selection.memory_min < 0)
    return fail(ErrorKind::invalid, "memory_min: expected at least 0, got {}",
                selection.memory_min);
  return machine::DeviceSelection{selection.slot_sizes, selection.memory_min, selection.policy,
                                  selection.objective, selection.required};
}

Result<machine::AllocRequest> ask_of(const Request& request) {
  BERTH_ASSIGN(auto selection, selection_of(request.selection));
  machine::AllocRequest ask{.resources = request.resources,
                            .label = request.label,
                            .priority = request.priority,
                            .selection = std::move(selection)};
  BERTH_TRY(machine::imply_devices(ask.selection, false, ask.resources));
  return ask;
}

}  // namespace berth::library
