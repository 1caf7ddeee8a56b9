#include "berth/placement/subsets.h"

namespace berth::placement {

Allocator::Allocator(Chooser chooser)
    : chooser_(std::move(chooser)), all_(first(chooser_.devices())), available_(all_) {}

Result<Answer> Allocator::allocate(PolicyKind policy, int count, DeviceSet required,
                                   Objective objective) {
  BERTH_ASSIGN(const Question question, ask(count, required, objective));
  return hold(chooser_.choose(policy, question));
}

Result<Answer> Allocator::allocate(Policy& policy, int count, DeviceSet required,
                                   Objective objective) {
  BERTH_ASSIGN(const Question question, ask(count, required, objective));
  return hold(chooser_.choose(policy, question));
}

Status Allocator::allocate_these(DeviceSet devices) {
  if (devices == 0) return fail(ErrorKind::invalid, "expected at least 1 device, got 0");
  if ((devices & ~all_) != 0)
    return fail(ErrorKind::invalid, "requested {}: the machine has {} devices, from 0",
                text(devices & ~all_), size(all_));
  if ((devices & ~available_) != 0)
    return fail(ErrorKind::busy, "{} already in use", text(devices & ~available_));
  available_ ^= devices;
  return {};
}

Status Allocator::free(DeviceSet devices) {
  if ((devices & ~all_) != 0)
    return fail(ErrorKind::invalid, "freed {}: the machine has {} devices, from 0",
                text(devices & ~all_), size(all_));
  if ((devices & available_) != 0)
    return fail(ErrorKind::stale, "{} not in use, so it cannot be freed",
                text(devices & available_));
  available_ ^= devices;
  return {};
}

Result<Question> Allocator::ask(int count, DeviceSet required, Objective objective) const {
  const DeviceSet held = required & all_ & ~available_;
  if (held != 0) return fail(ErrorKind::busy, "required {} already in use", text(held));
  return Question{available_, required, count, objective};
}

Result<Answer> Allocator::hold(Result<Answer> answer) {
  if (answer) available_ ^= answer->devices;
  return answer;
}

}  // namespace berth::placement
