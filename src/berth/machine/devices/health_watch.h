// Watching the devices' health: a separate process asks the drivers again and again and writes
// health updates to a pipe.
//
// Ownership, threads and failures are those of DeviceProgram; the last update holds until another
// comes.
#pragma once

#include <functional>
#include <string>

#include "berth/machine/devices/device_health.h"
#include "berth/machine/devices/device_program.h"

namespace berth::machine {

class HealthWatch {
 public:
  /// `program` runs watch_health(), and has its whole environment. `on_update` gets the latest
  /// update, in a turn of the loop.
  HealthWatch(os::Env& env, os::SpawnSpec program,
              std::function<void(DeviceHealthUpdate)> on_update);

 private:
  DeviceProgram program_;
};

/// The separate process: writes one update a line to `out`, now and every `every`, with a jitter of
/// a quarter, until a stop signal comes or nobody reads any more.
Status watch_health(os::Env& env, const DeviceOptions& options, const topology::Topology& first,
                    const std::string& ledger_directory, Duration every, const os::Fd& out);

}  // namespace berth::machine
