// Fitted performance parameters, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/fleets/fit.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::FleetFits& fits, const View& view);
/// {"version":1,"fits":[{"model","accelerator","perfParms":{…},"standardErrors":{…},…}]}.
std::string to_json(const engine::FleetFits& fits);

}  // namespace berth::render
