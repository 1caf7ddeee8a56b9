// What a run would do (berth run --plan), and valid files (berth check), as text and JSON.
#pragma once

#include <string>

#include "berth/engine/runs/run_plan.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::RunPlan& plan, const View& view);
std::string to_json(const engine::RunPlan& plan);
std::string to_text(const engine::CheckedFile& checked, const View& view);
/// {"version":1,"file","kind"}
std::string to_json(const engine::CheckedFile& checked);

}  // namespace berth::render
