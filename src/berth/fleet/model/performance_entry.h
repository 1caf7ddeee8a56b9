// A fitted model in the text of a fleet document. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/fleet/fit/fit.h"

namespace berth::fleet {

struct PerformanceEntry {
  std::string model, accelerator;
  int accelerators = 0;  // of a replica; 0: not known
  Fit fit;
};

/// A document with a fitted entry.
struct WrittenPerformance {
  std::string document;
  bool is_new = false;   // the entry was added
  int accelerators = 0;  // accCount of the entry before; 0: it had none
};

/// Puts the entry's perfParms into modelData.models[]: into the entry with this name and acc, or
/// into a new one. An existing entry keeps its other keys; accCount is added if it is missing and
/// known. All other text stays as it is, with its comments. "" is an empty document. Keys match in
/// any case; terms that were not determined are not written. Errors: invalid: not JSON, or no list
/// of models where one should be.
Result<WrittenPerformance> with_performance(std::string_view document,
                                            const PerformanceEntry& entry);

}  // namespace berth::fleet
