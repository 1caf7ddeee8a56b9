#include "berth/run/state/context.h"

#include "berth/base/text.h"
#include "berth/os/user_directory.h"
#include "berth/run/state/migrate.h"
#include "berth/store/database.h"

namespace berth::run {
namespace {

/// The database that BERTH_DB names; nullopt where it names a directory, or nothing.
std::optional<std::string> database_url(os::Env& env) {
  auto named = env.variable("BERTH_DB");
  if (named && !store::is_database_url(*named)) named.reset();
  return named;
}

constexpr std::size_t kMostMarker = 4096;

/// Which database a marker's text names. A state directory belongs to one store for good: else logs
/// and names of two of them would meet in one directory.
std::string address_in(std::string_view marker) {
  return std::string(trim(marker.substr(std::min(marker.find(' '), marker.size()))));
}

Result<std::unique_ptr<store::Store>> open_sqlite(os::Env& env, const std::string& state) {
  if (const auto marker = env.read_file(database_marker(state), kMostMarker))
    return fail(ErrorKind::usage, "{}: its runs are in a database: set BERTH_DB to {}", state,
                address_in(*marker));
  return store::sqlite_store(database_file(state));
}

/// From now on the directory's runs are in that database. usage: they are in another one, or in a
/// file of its own.
Status join_database(os::Env& env, const std::string& state, const store::Database& database) {
  const auto marker = env.read_file(database_marker(state), kMostMarker);
  if (marker && marker->starts_with(database.id + " ")) return {};
  if (marker)
    return fail(ErrorKind::usage,
                "{}: its runs are in another database, {}; name another directory in BERTH_STATE",
                state, address_in(*marker));
  if (env.status(database_file(state)))
    return fail(ErrorKind::usage,
                "{}: it already has runs: migrate them with berth migrate --to URL, or name "
                "another directory in BERTH_STATE",
                state);
  return mark_database(env, state, database);
}

Result<std::unique_ptr<store::Store>> open_database(os::Env& env, const std::string& state,
                                                    const std::string& url) {
  BERTH_ASSIGN(auto database, store::postgres_store(url, env.host_name()));
  BERTH_TRY(join_database(env, state, database));
  return std::move(database.store);
}

Result<Context> open_in(os::Env& env, const std::string& directory,
                        const std::optional<std::string>& url) {
  Context context;
  context.env = &env;
  BERTH_TRY(env.make_directory(directory, 0700));
  BERTH_ASSIGN(context.state_directory, env.real_path(directory));
  BERTH_ASSIGN(context.store, url ? open_database(env, context.state_directory, *url)
                                  : open_sqlite(env, context.state_directory));
  context.ledger_directory = machine::Ledger::default_directory(env);
  context.capacity = capacity_options(env, context.state_directory);
  return context;
}

}  // namespace

std::optional<std::string> marked_database(os::Env& env, const std::string& state) {
  const auto marker = env.read_file(database_marker(state), kMostMarker);
  return marker ? std::optional(address_in(*marker)) : std::nullopt;
}

Status mark_database(os::Env& env, const std::string& state, const store::Database& database) {
  const std::string marker = database_marker(state);
  BERTH_TRY(env.replace_file(marker, database.id + " " + database.place + "\n", 0600));
  BERTH_TRY(env.sync(marker));
  return env.sync(state);
}

Result<std::string> state_directory(os::Env& env) {
  const auto variable = [&](const char* name) { return env.variable(name).value_or(""); };
  std::string directory;
  if (const auto named = variable("BERTH_DB"); !named.empty() && !store::is_database_url(named))
    directory = named;
  else if (const auto chosen = variable("BERTH_STATE"); !chosen.empty())
    directory = chosen;
  else if (const auto own = os::own_directory(env, os::kStateHome))
    directory = *own;
  else
    return fail(ErrorKind::usage, "no place for the state: set BERTH_DB, XDG_STATE_HOME or HOME");
  if (directory.find("://") != std::string::npos)
    return fail(ErrorKind::usage,
                "BERTH_DB={}: expected a directory for the state, or postgresql://HOST/DATABASE",
                clip(directory.substr(0, directory.find("://") + 3)));
  if (const auto status = env.status(directory);
      status && status->kind != os::FileStatus::Kind::directory)
    return fail(ErrorKind::usage, "{}: expected a directory for the state, got a file", directory);
  return directory;
}

machine::CapacityOptions capacity_options(os::Env& env, const std::string& state) {
  machine::CapacityOptions options;
  options.disk_directory = state;
  constexpr auto kSystemFile = "/etc/berth/machine.yaml";
  if (const auto file = env.variable("BERTH_MACHINE"))
    options.machine_file = *file;
  else if (env.status(kSystemFile))
    options.machine_file = kSystemFile;
  return options;
}

Result<Context> open_context(os::Env& env) {
  BERTH_ASSIGN(const std::string directory, state_directory(env));
  return open_in(env, directory, database_url(env));
}

Result<Context> open_context(os::Env& env, const std::string& state) {
  return open_in(env, state, std::nullopt);
}

std::string run_directory(const Context& context, const std::string& run_name) {
  return runs_directory(context.state_directory) + "/" + run_name;
}

Status find_devices(Context& context, const Resources& wanted, const std::string& gpus) {
  if (context.devices || machine::device_need(wanted).count == 0) return {};
  BERTH_ASSIGN(context.devices, machine::read_devices(*context.env, {}, context.ledger_directory));
  if (!gpus.empty())
    context.devices->shares = machine::visible_ones(std::move(context.devices->shares),
                                                    {.cuda = gpus, .nvidia = {}, .rocr = gpus});
  return {};
}

}  // namespace berth::run
