// Topologies and choices of GPUs as text and JSON.
#pragma once

#include <string>

#include "berth/base/json_writer.h"
#include "berth/engine/machines/placement.h"
#include "berth/render/table.h"

namespace berth::render {

/// Adds the JSON Schemas of the results below to an object.
void add_placement_schemas(JsonWriter& json);

std::string to_text(const topology::Topology& topology, const View& view);
/// {"version":1,"topology":{…},"islands":[[indices]]}.
std::string to_json(const topology::Topology& topology);

std::string to_text(const engine::PlacementReport& report, const View& view);
std::string to_json(const engine::PlacementReport& report);

}  // namespace berth::render
