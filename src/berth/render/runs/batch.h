// How the runs of a batch (berth run --rows) ended, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/runs/batch.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::BatchResult& batch, const View& view);
/// The list of runs, as berth runs prints it.
std::string to_json(const engine::BatchResult& batch);
/// The commands to run next: one line for each run that failed or can be resumed.
std::string next_commands(const engine::BatchResult& batch);

}  // namespace berth::render
