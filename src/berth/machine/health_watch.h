// The clock of the devices' health: a process of its own asks the drivers again and again, and
// tells its news through a pipe.
//
// Ownership, threads and failure as DeviceProgram has them; what it told last stands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/machine/device_news.h"
#include "berth/machine/device_program.h"

namespace berth::machine {

class HealthWatch {
 public:
  /// `program`: what runs watch_health(), and its whole environment. `on_news` gets the latest
  /// news, in a turn of the loop.
  HealthWatch(os::Env& env, os::SpawnSpec program, std::function<void(DeviceNews)> on_news);

 private:
  DeviceProgram program_;
};

/// The other end: writes one line of news to stdout, now and every `every`, a quarter more or less
/// by chance, until a stop signal comes or nobody reads it any more.
Status watch_health(os::Env& env, const DeviceOptions& options, const topology::Topology& first,
                    const std::string& ledger_directory, Duration every, const os::Fd& out);

}  // namespace berth::machine
