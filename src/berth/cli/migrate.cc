// berth migrate: from SQLite to a database.
#include "berth/cli/migrate.h"

#include "berth/base/text.h"
#include "berth/cli/table.h"
#include "berth/run/migrate.h"

namespace berth::cli {
namespace {

/// {"version":1,"database","state","was_there","rows":{"run":12,…}}
std::string json(const store::Migrated& migrated, const std::string& state) {
  std::string rows;
  for (const auto& [table, count] : migrated.rows)
    rows += fmt::format("{}{}: {}", rows.empty() ? "" : ", ", json_quote(table), count);
  return fmt::format(
      "{{\"version\": 1, \"database\": {}, \"state\": {}, \"was_there\": {}, \"rows\": {{{}}}}}\n",
      json_quote(migrated.place), json_quote(state), migrated.was_there, rows);
}

}  // namespace

Result<int> migrate_command(os::Env& env, const Arguments& arguments) {
  const auto on_progress = [](const std::string& table, std::int64_t rows) {
    print_error(fmt::format("{}: {}\n", table, rows));
  };
  BERTH_ASSIGN(const auto migrated, run::migrate(env, arguments.target, on_progress));
  BERTH_ASSIGN(const auto state, run::state_directory(env));
  if (arguments.json) {
    print(json(migrated, state));
    return 0;
  }
  print(
      fmt::format("{} {} in {}.\n{}/berth.db stays, and takes no more changes. From now on:\n"
                  "  export BERTH_DB={} BERTH_STATE={}\n",
                  state, migrated.was_there ? "was there already," : "is", migrated.place, state,
                  migrated.place, state));
  return 0;
}

}  // namespace berth::cli
