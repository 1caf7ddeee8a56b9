#include "berth/run/site.h"

#include "berth/base/text.h"

namespace berth::run {

Result<std::string> state_directory(os::Env& env) {
  std::string directory;
  if (const auto named = env.variable("BERTH_DB"); named && !named->empty())
    directory = *named;
  else if (const auto state = env.variable("XDG_STATE_HOME"); state && !state->empty())
    directory = *state + "/berth";
  else if (const auto home = env.variable("HOME"); home && !home->empty())
    directory = *home + "/.local/state/berth";
  else
    return fail(ErrorKind::usage, "no place for the state: set BERTH_DB, XDG_STATE_HOME or HOME");
  if (directory.find("://") != std::string::npos)
    return fail(ErrorKind::usage, "BERTH_DB={}: wanted a directory for the state",
                clip(directory.substr(0, directory.find("://") + 3)));
  if (const auto status = env.status(directory);
      status && status->kind != os::FileStatus::Kind::directory)
    return fail(ErrorKind::usage, "{}: wanted a directory for the state, found a file", directory);
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

Result<Site> open_site(os::Env& env) {
  Site site;
  site.env = &env;
  BERTH_ASSIGN(std::string directory, state_directory(env));
  BERTH_TRY(env.make_directory(directory, 0700));
  BERTH_ASSIGN(site.state_directory, env.real_path(directory));
  BERTH_ASSIGN(site.store, store::sqlite_store(site.state_directory + "/berth.db"));
  site.ledger_directory = machine::Ledger::default_directory(env);
  site.capacity = capacity_options(env, site.state_directory);
  return site;
}

std::string run_directory(const Site& site, const std::string& run_name) {
  return site.state_directory + "/runs/" + run_name;
}

Status find_devices(Site& site, const Resources& wanted, const std::string& gpus) {
  if (site.devices || machine::device_need(wanted).count == 0) return {};
  BERTH_ASSIGN(site.devices, machine::read_devices(*site.env, {}, site.ledger_directory));
  if (!gpus.empty())
    site.devices->shares = machine::visible_ones(std::move(site.devices->shares), gpus, gpus);
  return {};
}

}  // namespace berth::run
