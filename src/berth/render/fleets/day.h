// A fleet planned over a day, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/fleets/fleet_day.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::PlannedDay& planned, const View& view);
/// {"version":1,"windows":[…],"plans":{"static","greedy","day"},"bound","gap","stopped",
/// "unservable_hours","unservable":[…]}, with "replay" by server if the trace was replayed.
std::string to_json(const engine::PlannedDay& planned);

}  // namespace berth::render
