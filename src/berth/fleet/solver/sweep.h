// A sweep: the fleet planned again and again while one value of its document varies.
//
// Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

struct SweepRange {
  std::string path;  ///< The value that varies, such as capacity.H100; as of set_value().
  double first = 0, last = 0, step = 1;
};

/// The plan at one value.
struct SweepStep {
  double at = 0;
  double cost = 0, value = 0, gap = 0;
  std::map<int, int> unserved;  ///< Servers without accelerators, by priority.
};
struct Sweep {
  std::string path;
  std::vector<SweepStep> steps;
};

/// Errors: as set_value().
Result<Sweep> sweep(System system, const SweepRange& range, const Execution& execution = {});

/// Returns true if some priority has servers that are not served.
bool leaves_unserved(const std::map<int, int>& unserved);

}  // namespace berth::fleet
