// A comparison of runs, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/queries/comparison.h"
#include "berth/render/table.h"

namespace berth::render {

/// The runs, the parameters of their best trials, and the parameters that all have tried.
std::string to_text(const engine::Comparison& comparison, const View& view);
/// {"version":1,"metric","direction","runs":[{…,"best":{task},…}],"shared":[{…}]}
std::string to_json(const engine::Comparison& comparison);

}  // namespace berth::render
