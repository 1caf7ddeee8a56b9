// Files that an earlier run of a flow wrote and that no task of the flow writes any more: a sample
// was taken out, or an output has another name. They are told, never removed.
#pragma once

#include <string>
#include <vector>

#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::run {

struct StaleOutputs {
  std::string run;                 ///< The run that wrote them, the latest before that was done.
  std::vector<std::string> paths;  ///< Beside the flow's file, sorted; only what is there still.
};

/// What is stale after a run of a flow, which has `tasks`. Nothing, where the run is not done.
Result<StaleOutputs> stale_outputs(Context& context, const store::RunRecord& run,
                                   const std::vector<store::TaskRecord>& tasks);

}  // namespace berth::run
