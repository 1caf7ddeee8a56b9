// The ten most used functions and fields of the machine resource allocator, written with Berth.
// docs/how-to/moving/machine-resources.md lists all of them.
// A comment that has only names marks what the code replaces.
#include <berth/machine.h>

#include <cstdlib>

#include "../cpp/expect.h"

int main() {
  setenv("BERTH_TOPOLOGY", "dgx-h100", 1);  // eight GPUs, wherever this runs

  // NewResources
  auto machine = value(berth::Machine::open({.disk_directory = "."}));

  // Resources.FetchMachineResources
  const auto capacity = value(machine.capacity());
  EXPECT(capacity.total.devices.size() == 8);
  std::cout << to_string(capacity.free.resources) << '\n';

  // AllocRequest
  berth::Request request{.resources = {}, .label = "train"};
  // AllocRequest.MaxCPU
  request.resources.set(berth::Known::cpu, 500);  // half a core
  // AllocRequest.MaxMem
  request.resources.set(berth::Known::mem, value(berth::parse_amount("mem", "64M")));
  // AllocRequest.MaxGPUCount
  request.resources.set(berth::Known::gpu, 2);

  // Resources.Alloc
  auto held = value(machine.reserve(request));

  // Allocated.GPU
  for (const auto& device : held.part().devices)
    std::cout << device.uuid << ' ' << device.slots << " slots\n";
  for (const auto& [name, value] : held.environment()) setenv(name.c_str(), value.c_str(), 1);
  EXPECT(std::getenv("CUDA_VISIBLE_DEVICES") != nullptr);

  // Allocated.CPU
  EXPECT(held.part().cores.at(0).milli == 500);

  // Allocated.Release
  value(held.release());
  EXPECT(held.release().error().kind == berth::ErrorKind::stale);
  request.resources.set(berth::Known::gpu, 9);
  const auto refused = machine.reserve(request);
  EXPECT(!refused && refused.error().kind == berth::ErrorKind::impossible);
}
