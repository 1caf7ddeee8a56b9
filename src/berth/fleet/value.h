// What a candidate costs against what a server has now.
#pragma once

#include "berth/fleet/fleet.h"

namespace berth::fleet {

inline constexpr double kChangePart = 0.1;  // of both costs: what changing the accelerator takes

/// `same`: the accelerator is the one the server has. The reference takes the same accelerator and
/// replicas for no change, whatever the prices have become.
inline double value_of(const Allocation& current, bool same, int replicas, double cost,
                       QueueModel model) {
  if (same && replicas == current.replicas && model == QueueModel::reference) return 0;
  if (same) return cost - current.cost;
  return kChangePart * (current.cost + cost) + (cost - current.cost);
}

}  // namespace berth::fleet
