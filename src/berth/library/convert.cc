#include "berth/library/convert.h"

namespace berth::library {

MachinePart part_of(const machine::Block& block) {
  MachinePart part{.resources = block.resources};
  for (const CoreShare& core : block.cores)
    part.cores.push_back({core.core, core.node, core.milli});
  for (const machine::DeviceShare& device : block.devices)
    part.devices.push_back(
        {device.uuid, device.index, device.node, device.memory, device.slots, device.whole});
  return part;
}

Result<machine::AllocRequest> ask_of(const Request& request) {
  if (placement::name(request.policy).empty())
    return fail(ErrorKind::invalid, "no such policy: {}", static_cast<int>(request.policy));
  if (placement::name(request.objective).empty())
    return fail(ErrorKind::invalid, "no such objective: {}", static_cast<int>(request.objective));
  if (request.gpu_memory_min < 0)
    return fail(ErrorKind::invalid, "gpu_memory_min: wanted at least 0, found {}",
                request.gpu_memory_min);
  machine::AllocRequest ask{.resources = request.resources,
                            .label = request.label,
                            .priority = request.priority,
                            .selection = {.slot_sizes = request.slot_sizes,
                                          .memory_min = request.gpu_memory_min,
                                          .policy = request.policy,
                                          .objective = request.objective,
                                          .required = request.required}};
  BERTH_TRY(machine::imply_devices(ask.selection, false, ask.resources));
  return ask;
}

}  // namespace berth::library
