// A fitted model in a fleet document. In write.cc.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/fleet/fit.h"

namespace berth::fleet {

struct PerformanceEntry {
  std::string model, accelerator;
  int accelerators = 0;  // of a replica; 0: not said
  Fit fit;
};

/// The document with the entry's perfParms in modelData.models[]: of the entry with this name and
/// acc where there is one, which keeps what else it says, and of a new one otherwise. "" is an
/// empty document. Keys match in any case; terms that were not determined are not written. Errors:
/// invalid: not JSON, or no list of models where one should be.
Result<std::string> with_performance(std::string_view document, const PerformanceEntry& entry);

}  // namespace berth::fleet
