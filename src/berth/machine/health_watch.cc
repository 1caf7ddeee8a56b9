#include "berth/machine/health_watch.h"

#include "berth/base/text.h"
#include "berth/os/log.h"

namespace berth::machine {

HealthWatch::HealthWatch(os::Env& env, os::SpawnSpec program)
    : program_(env, std::move(program), [&env](const std::string& because) {
        os::log_event(env, "health watch", {{"error", json_quote(because)}});
      }) {}

std::optional<DeviceHealthUpdate> HealthWatch::turn(bool ready) {
  std::optional<DeviceHealthUpdate> latest;
  for (const auto& line : program_.turn(ready))
    if (auto update = health_update_of_json(line)) latest = *std::move(update);
  return latest;
}

Status watch_health(os::Env& env, const DeviceOptions& options, const topology::Topology& first,
                    const std::string& ledger_directory, Duration every, const os::Fd& out) {
  while (env.stop_signals() == 0) {
    // Drivers that do not answer make no update; devices that are gone do.
    if (const auto update = read_health_update(env, options, first, ledger_directory))
      BERTH_TRY(env.write_all(out, to_json(*update) + "\n"));
    BERTH_TRY(env.wait({}, env.now() + jittered(env, every)));
  }
  return {};
}

}  // namespace berth::machine
