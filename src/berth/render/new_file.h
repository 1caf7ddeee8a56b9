// A file that berth init has written, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/new_file.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::NewFile& made, const View& view);
/// {"version":1,"kind","file"}
std::string to_json(const engine::NewFile& made);

}  // namespace berth::render
