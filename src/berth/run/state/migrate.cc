// The move of a state directory's runs from its own SQLite file to a database.
#include "berth/run/state/migrate.h"

#include "berth/store/postgres_address.h"

namespace berth::run {

Result<store::Migrated> migrate(
    os::Env& env, const std::string& url,
    const std::function<void(const std::string& table, std::int64_t rows)>& on_progress) {
  if (store::holds_password(url))
    return fail(ErrorKind::usage,
                "all users of this machine can see the arguments of a command: put the password "
                "into ~/.pgpass instead of the URL, and change it");
  BERTH_ASSIGN(const auto state, state_directory(env));
  const std::string file = database_file(state);
  if (!env.status(file))
    return fail(ErrorKind::not_found, "{}: there are no runs to migrate", file);
  BERTH_ASSIGN(const auto address, store::read_address(url));
  if (const auto place = marked_database(env, state); place && *place != address.place)
    return fail(ErrorKind::exists, "{}: its runs have been moved to {} permanently", file, *place);
  std::vector<os::Fd> locks;
  store::Migration migration;
  migration.file = file;
  migration.url = url;
  migration.keep_runners_out = [&](const std::vector<std::string>& names) -> Status {
    for (const auto& name : names) {
      const std::string directory = runs_directory(state) + "/" + name;
      BERTH_TRY(env.make_directory(directory, 0700));
      auto lock = env.lock(lock_file(directory), false);
      if (!lock && lock.error().kind == ErrorKind::busy)
        return fail(ErrorKind::busy, "{} is running; stop it first: berth stop {}", name, name);
      if (!lock) return std::unexpected(lock.error());
      locks.push_back(*std::move(lock));
    }
    return {};
  };
  migration.on_progress = on_progress;
  migration.conclude = [&](const store::Migrated& migrated) {
    return mark_database(env, state, {migrated.id, migrated.place, nullptr});
  };
  return store::migrate(migration);
}

}  // namespace berth::run
