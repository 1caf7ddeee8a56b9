// Why a task of a flow runs: what differs from the last time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::run {

/// The task of this label in the latest of the `runs` of the flow before `before` (all, where it is
/// 0) that came as far as the task, and the name of that run.
struct EarlierTask {
  std::string run;
  store::TaskRecord task;
};
std::optional<EarlierTask> earlier_task(Context& context, std::span<const store::RunRecord> runs,
                                        std::string_view flow_name, RunId before,
                                        const std::string& label);

/// What differs, a line each: "since count-1: input data/a.txt changed". `depends` is the record of
/// what the task depends on now. Empty where nothing does.
Result<std::vector<std::string>> changes_since(const EarlierTask& earlier,
                                               const std::string& depends);

}  // namespace berth::run
