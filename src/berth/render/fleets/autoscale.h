// Decisions of the control loop of berth autoscale, replayed or recorded, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/fleets/autoscale.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::ReplayedTrace& replayed, const View& view);
/// {"server","accelerator","seconds",…,"decisions":[{"seconds","current","desired",…}]}.
std::string to_json(const engine::ReplayedTrace& replayed);

std::string to_text(const engine::AutoscaleHistory& history, const View& view);
/// {"server","decisions":[…]}, with each decision as recorded.
std::string to_json(const engine::AutoscaleHistory& history);

}  // namespace berth::render
