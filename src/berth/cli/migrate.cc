// berth migrate: from SQLite to a database.
#include "berth/run/migrate.h"

#include "berth/base/json_writer.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/run/layout.h"

namespace berth::cli {
namespace {

struct MigrateOptions {
  bool json = false;
  std::string to;

  void add_to(Options& options) {
    options.json(json);
    options.value("--to", to, "Database without runs").required().named("URL");
    options.example("berth migrate --to postgresql://ada@db.lab/berth");
  }
};

/// {"version":1,"database","state","was_there","rows":{"run":12,…}}
std::string migrated_json(const store::Migrated& migrated, const std::string& state) {
  JsonWriter json(JsonWriter::Style::spaced);
  json.object().add("version", 1).add("database", migrated.place).add("state", state);
  json.add("was_there", migrated.was_there).key("rows").object();
  for (const auto& [table, count] : migrated.rows) json.add(table, count);
  return json.end().end().take() + "\n";
}

Result<int> migrate(os::Env& env, const MigrateOptions& options) {
  const auto on_progress = [](const std::string& table, std::int64_t rows) {
    print_error(fmt::format("{}: {}\n", table, rows));
  };
  BERTH_ASSIGN(const auto migrated, run::migrate(env, options.to, on_progress));
  BERTH_ASSIGN(const auto state, run::state_directory(env));
  if (options.json) {
    print(migrated_json(migrated, state));
    return 0;
  }
  print(
      fmt::format("{} {} in {}.\n"
                  "{} is kept, and is read-only from now on. Set:\n"
                  "  export BERTH_DB={} BERTH_STATE={}\n",
                  state, migrated.was_there ? "was already" : "is", migrated.place,
                  run::database_file(state), migrated.place, state));
  return 0;
}

}  // namespace

Command migrate_command() {
  return command("migrate", "Copy all runs to a PostgreSQL database", migrate);
}

}  // namespace berth::cli
