// The cache of flows, as text and JSON.
#pragma once

#include <string>

#include "berth/base/json_writer.h"
#include "berth/engine/cache.h"
#include "berth/render/table.h"

namespace berth::render {

/// Adds the JSON Schemas of the results below to an object.
void add_cache_schemas(JsonWriter& json);

std::string to_text(const engine::CacheReport& report, const View& view);
/// {"version":1,…}: what the cache contains, and what was verified or removed.
std::string to_json(const engine::CacheReport& report);

}  // namespace berth::render
