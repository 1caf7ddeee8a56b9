#include "berth/engine/migration.h"

#include "berth/run/state/layout.h"
#include "berth/run/state/migrate.h"

namespace berth::engine {

Result<Migration> migrate(
    os::Env& env, const std::string& url,
    const std::function<void(const std::string& table, std::int64_t rows)>& on_progress) {
  BERTH_ASSIGN(auto migrated, run::migrate(env, url, on_progress));
  BERTH_ASSIGN(const auto state, run::state_directory(env));
  return Migration{migrated.place, state, run::database_file(state), migrated.was_there,
                   std::move(migrated.rows)};
}

}  // namespace berth::engine
