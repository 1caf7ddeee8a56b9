#include "berth/render/runs/migration.h"

#include <fmt/format.h>

#include "berth/base/json_writer.h"

namespace berth::render {

std::string to_text(const engine::Migration& migration, const View&) {
  return fmt::format(
      "{} {} in {}.\n"
      "{} is kept, and is read-only from now on. Set:\n"
      "  export BERTH_DB={} BERTH_STATE={}\n",
      migration.state_directory, migration.was_there ? "was already" : "is", migration.database,
      migration.old_database, migration.database, migration.state_directory);
}

std::string to_json(const engine::Migration& migration) {
  JsonWriter json(JsonWriter::Style::spaced);
  json.object().add("version", 1).add("database", migration.database);
  json.add("state", migration.state_directory).add("was_there", migration.was_there);
  json.key("rows").object();
  for (const auto& [table, count] : migration.rows) json.add(table, count);
  return json.end().end().take() + "\n";
}

}  // namespace berth::render
