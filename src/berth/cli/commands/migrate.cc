// berth migrate: from SQLite to a database.
#include "berth/cli/output.h"
#include "berth/render/runs/migration.h"

namespace berth::cli {
namespace {

struct MigrateOptions {
  Output output;
  std::string to;

  void add_to(Options& options) {
    output.add_to(options);
    options.value("--to", to, "Database without runs").required().named("URL");
    options.example("berth migrate --to postgresql://ada@db.lab/berth");
  }
};

Result<int> migrate(os::Env& env, const MigrateOptions& options) {
  const auto on_progress = [](const std::string& table, std::int64_t rows) {
    print_error(fmt::format("{}: {}\n", table, rows));
  };
  return options.output.print_or_fail(engine::migrate(env, options.to, on_progress));
}

}  // namespace

Command migrate_command() {
  return command("migrate", "Copy all runs to a PostgreSQL database", migrate);
}

}  // namespace berth::cli
