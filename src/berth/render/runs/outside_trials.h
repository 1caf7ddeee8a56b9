// Trials that are evaluated outside Berth, as text and JSON: {"version":1,"told":[ids]},
// {"version":1,"enqueued":[{NAME: VALUE}]}, and for the waiting trials the JSON of their run.
#pragma once

#include <string>

#include "berth/engine/studies/outside_trials.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_json(const engine::WaitingTrials& waiting);
std::string to_json(const engine::StoredResult& stored);
std::string to_text(const engine::StoredResult& stored, const View& view);
std::string to_json(const engine::EnqueuedPoints& added);
std::string to_text(const engine::EnqueuedPoints& added, const View& view);

}  // namespace berth::render
