// The value of a candidate, a mix or a split: its cost relative to what the server has now.
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

inline constexpr double kChangePart =
    0.1;  // of the cost that comes and goes: the price of a change

/// One accelerator of a server, in one role: what the server has of it, and what it is to have.
struct Part {
  bool held = false;  // the server has it now, if only without replicas
  int replicas_before = 0, replicas = 0;
  double cost_before = 0, cost = 0;
};

/// What `current` has of the accelerator in the role; nothing is to come.
Part part_of(const Allocation& current, std::string_view accelerator, Role role = Role::whole);

/// The new cost − the old where the accelerators stay the same ones; else 0.1·(what each of them
/// loses or gains in cost) is added, which is 0.1·(old + new) where none stays. `parts`: of the
/// accelerators to come, each once. The reference takes the same accelerators and replicas for no
/// change, whatever the prices have become.
inline double value_of(const Allocation& current, std::span<const Part> parts, QueueModel model) {
  const std::size_t held =
      current.parts.empty() ? (current.accelerator.empty() ? 0 : 1) : current.parts.size();
  bool same = parts.size() == held, unchanged = true;
  double cost = 0, kept = 0, moved = 0;
  int replicas = 0;
  for (const Part& part : parts) {
    same = same && part.held;
    unchanged = unchanged && part.replicas == part.replicas_before;
    replicas += part.replicas;
    cost += part.cost;
    kept += part.cost_before;
    moved += std::abs(part.cost - part.cost_before);
  }
  if (same && unchanged && replicas == current.replicas && model == QueueModel::reference) return 0;
  if (same) return cost - current.cost;
  return kChangePart * (moved + (current.cost - kept)) + (cost - current.cost);
}

/// Of one accelerator.
inline double value_of(const Allocation& current, std::string_view accelerator, int replicas,
                       double cost, QueueModel model) {
  if (accelerator.empty()) return value_of(current, {}, model);
  Part part = part_of(current, accelerator);
  part.replicas = replicas;
  part.cost = cost;
  return value_of(current, std::array{part}, model);
}

}  // namespace berth::fleet
