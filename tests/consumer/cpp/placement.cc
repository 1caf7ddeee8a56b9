// Which k GPUs a job gets: berth/placement.h.
#include <berth/placement.h>
#include <berth/topology.h>

#include <bit>

#include "expect.h"

namespace placement = berth::placement;

/// A policy of one's own: the highest indices.
class Highest final : public placement::Policy {
 public:
  placement::DeviceSet choose(std::span<const std::int32_t> /*scores*/, int /*devices*/,
                              const placement::Question& question) override {
    placement::DeviceSet chosen = 0, left = question.available;
    for (int i = 0; i < question.count; ++i) {
      const placement::DeviceSet highest = std::bit_floor(left);
      chosen |= highest;
      left &= ~highest;
    }
    return chosen;
  }
};

int main() {
  const auto machine = value(berth::topology::known_machine("dgx1-v100"));
  placement::Allocator allocator(value(placement::Chooser::make(machine)));

  // The best pair, and the best four of what is left.
  const auto pair = value(allocator.allocate(placement::PolicyKind::packed, 2));
  EXPECT(pair.devices == 0b1100 && pair.value.first == 250 && pair.exact &&
         pair.value.first == pair.bound);
  const auto four = value(allocator.allocate(placement::PolicyKind::best_effort, 4));
  EXPECT(std::popcount(four.devices) == 4 && (four.devices & pair.devices) == 0);

  // Three more are not free, nine there will never be; what was freed is not held.
  EXPECT(allocator.allocate(placement::PolicyKind::simple, 3).error().kind ==
         berth::ErrorKind::busy);
  EXPECT(allocator.allocate(placement::PolicyKind::simple, 9).error().kind ==
         berth::ErrorKind::impossible);
  value(allocator.free(four.devices));
  EXPECT(allocator.free(four.devices).error().kind == berth::ErrorKind::stale);
  EXPECT(std::popcount(allocator.available()) == 6);

  Highest highest;
  EXPECT(value(allocator.allocate(highest, 2)).devices == 0b1100'0000);

  // Questions without an allocator: a matrix of one's own, the weakest link, and the next best.
  const std::vector<std::int32_t> scores{0, 9, 1, 9, 0, 5, 1, 5, 0};
  auto chooser = value(placement::Chooser::make(scores, 3));
  const placement::Question question{
      .available = 0b111, .count = 2, .objective = value(placement::objective_named("min"))};
  const auto best = value(chooser.choose(value(placement::policy_named("packed")), question));
  EXPECT(best.devices == 0b011 && best.value.first == 9);
  EXPECT(chooser.best_alternative(question, best)->devices == 0b110);
}
