// A file that berth init has written, as text and JSON.
#pragma once

#include <string>

#include "berth/base/json_writer.h"
#include "berth/engine/new_file.h"
#include "berth/render/table.h"

namespace berth::render {

/// Adds the JSON Schemas of the results below to an object.
void add_new_file_schemas(JsonWriter& json);

std::string to_text(const engine::NewFile& made, const View& view);
/// {"version":1,"kind","file"}
std::string to_json(const engine::NewFile& made);

}  // namespace berth::render
