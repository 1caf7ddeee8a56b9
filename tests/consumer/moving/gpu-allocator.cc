// The ten most used functions of the GPU allocator, written with Berth.
// docs/how-to/moving/gpu-allocator.md lists all of them.
// A comment that has only names marks what the code replaces.
#include <berth/placement.h>
#include <berth/topology.h>

#include <bit>

#include "../cpp/expect.h"

namespace placement = berth::placement;

// Policy.Allocate
class Highest final : public placement::Policy {
 public:
  placement::DeviceSet choose(std::span<const std::int32_t> /*scores*/, int /*devices*/,
                              const placement::Question& question) override {
    placement::DeviceSet chosen = question.required, left = question.available & ~chosen;
    for (int i = std::popcount(chosen); i < question.count; ++i) {
      const placement::DeviceSet highest = std::bit_floor(left);
      chosen |= highest;
      left &= ~highest;
    }
    return chosen;
  }
};

int main() {
  const auto machine = value(berth::topology::known_machine("dgx1-v100"));  // or discover()

  // NewAllocator
  placement::Allocator allocator(value(placement::Chooser::make(machine)));

  // Allocator.GPUs, Device.Details
  for (const auto& device : machine.devices)
    std::cout << device.index << ' ' << device.uuid << ' ' << device.model << ' ' << device.numa
              << '\n';

  // Allocator.Allocate, NewBestEffortPolicy
  const auto pair = value(allocator.allocate(placement::PolicyKind::best_effort, 2));
  EXPECT(std::popcount(pair.devices) == 2 && pair.exact);

  // Allocator.AllocateSpecific
  const placement::DeviceSet two = allocator.available() & (1U << 4 | 1U << 5);
  value(allocator.allocate_these(two));
  EXPECT(allocator.allocate_these(two).error().kind == berth::ErrorKind::busy);

  // Allocator.Free
  value(allocator.free(pair.devices));
  value(allocator.free(two));
  EXPECT(allocator.free(two).error().kind == berth::ErrorKind::stale);

  // NewSimplePolicy, NewStaticDGX1Policy
  EXPECT(value(allocator.allocate(placement::PolicyKind::simple, 2)).devices == 0b11);
  EXPECT(allocator.allocate(placement::PolicyKind::static_dgx1_volta, 4).has_value());
  Highest highest;
  EXPECT(std::popcount(value(allocator.allocate(highest, 1)).devices) == 1);
}
