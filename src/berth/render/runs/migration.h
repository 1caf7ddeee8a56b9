// A migration to a database, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/migration.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::Migration& migration, const View& view);
/// {"version":1,"database","state","was_there","rows":{"run":12,…}}
std::string to_json(const engine::Migration& migration);

}  // namespace berth::render
