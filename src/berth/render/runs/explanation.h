// Why a run or a task waits, failed or stopped, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/queries/run_explanation.h"
#include "berth/engine/queries/task_explanation.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::RunExplanation& run, const View& view);
std::string to_json(const engine::RunExplanation& run);
std::string to_text(const engine::TaskExplanation& task, const View& view);
std::string to_json(const engine::TaskExplanation& task);

}  // namespace berth::render
