// The results of a run, as JSON.
#pragma once

#include <string>

#include "berth/engine/runs/results.h"

namespace berth::render {

/// The run and its tasks, as berth show prints them.
std::string to_json(const engine::RunResults& results);

}  // namespace berth::render
