// The findings of an examination as text and JSON.
#pragma once

#include <string>

#include "berth/base/json_writer.h"
#include "berth/engine/machines/examination.h"
#include "berth/render/table.h"

namespace berth::render {

/// Adds the JSON Schemas of the results below to an object.
void add_examination_schemas(JsonWriter& json);

/// A line for each finding, followed by what to do.
std::string to_text(const engine::Examination& examination, const View& view);
/// {"version":1,"faults":N,"findings":[{"topic","state","found","advice"}]}.
std::string to_json(const engine::Examination& examination);

}  // namespace berth::render
