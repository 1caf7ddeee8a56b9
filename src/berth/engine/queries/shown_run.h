// A run with what a client shows of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/engine/queries/failures.h"
#include "berth/exec/labels.h"
#include "berth/store/store.h"

namespace berth::engine {

struct ShownRun {
  store::RunRecord record;
  std::string state;  ///< From state_now().
  std::vector<store::Usage> used = {};
  std::vector<Failure> failures = {};       ///< The first of its tasks that failed.
  std::optional<exec::Labels> labels = {};  ///< nullopt: those of the record.
};

}  // namespace berth::engine
