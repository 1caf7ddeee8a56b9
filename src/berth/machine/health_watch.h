// The clock of the devices' health: a process of its own asks the drivers again and again, so that
// a driver that hangs or crashes takes nobody with it, and tells its news through a pipe.
//
// Ownership: a HealthWatch refers to its Env; its end ends the process. Threads: one. Failure: a
// process that dies or cannot be started is started again after a while; what it told last stands.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/machine/device_news.h"
#include "berth/os/env.h"

namespace berth::machine {

class HealthWatch {
 public:
  /// `program`: what runs watch_health(), and its whole environment.
  HealthWatch(os::Env& env, os::SpawnSpec program) : env_(&env), program_(std::move(program)) {}
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;
  ~HealthWatch() { end(); }

  void watch(std::vector<os::Watch>& watches) const;
  /// When turn() must be called even if its watch is not ready.
  std::optional<Mono> deadline() const;
  /// Reads what came (`ready`: its watch was), starts the process when that is due. The latest
  /// news, if any came.
  std::optional<DeviceNews> turn(bool ready);

 private:
  void start();
  void end();

  os::Env* env_;
  os::SpawnSpec program_;
  os::Child child_;
  std::string unread_;  // of a line that has not ended
  std::optional<Mono> start_at_ = Mono{};
};

/// The other end: writes one line of news to stdout, now and every `every`, a quarter more or less
/// by chance, until a stop signal comes or nobody reads it any more.
Status watch_health(os::Env& env, const DeviceOptions& options, const topology::Topology& first,
                    const std::string& ledger_directory, Duration every, const os::Fd& out);

}  // namespace berth::machine
