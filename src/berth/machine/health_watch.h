// Watching the devices' health: a separate process asks the drivers again and again and writes
// health updates to a pipe.
//
// Ownership, threads and failures are those of DeviceProgram; the last update holds until another
// comes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/machine/device_health.h"
#include "berth/machine/device_program.h"

namespace berth::machine {

class HealthWatch {
 public:
  /// `program` is the command that runs watch_health(), with its whole environment.
  HealthWatch(os::Env& env, os::SpawnSpec program);

  void watch(std::vector<os::Watch>& watches) const { program_.watch(watches); }
  std::optional<Mono> deadline() const { return program_.deadline(); }
  /// The latest update, if any came.
  std::optional<DeviceHealthUpdate> turn(bool ready);

 private:
  DeviceProgram program_;
};

/// The separate process: writes one update a line to `out`, now and every `every`, with a jitter of
/// a quarter, until a stop signal comes or nobody reads any more.
Status watch_health(os::Env& env, const DeviceOptions& options, const topology::Topology& first,
                    const std::string& ledger_directory, Duration every, const os::Fd& out);

}  // namespace berth::machine
