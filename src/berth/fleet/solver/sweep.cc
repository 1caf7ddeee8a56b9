#include "berth/fleet/solver/sweep.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::fleet {

Result<Sweep> sweep(System system, const SweepRange& range, const Execution& execution) {
  const std::string path = lower(range.path);
  const bool only_limits = path.starts_with("capacity.") || path.starts_with("optimizer.");
  auto made = candidates(system, system.options.model, execution);
  Sweep found{range.path, {}};
  for (int i = 0; range.first + i * range.step <= range.last + 1e-9 * range.step; ++i) {
    const double value = range.first + i * range.step;
    BERTH_TRY(set_value(system, range.path, value));
    if (!only_limits) made = candidates(system, system.options.model, execution);
    const auto plan = solve(system, made, system.options, execution);
    found.steps.push_back(
        {value, plan.cost, plan.proof.value, plan.proof.gap, plan.proof.unserved});
  }
  return found;
}

bool leaves_unserved(const std::map<int, int>& unserved) {
  return std::ranges::any_of(unserved, [](const auto& of) { return of.second > 0; });
}

}  // namespace berth::fleet
