// A DeviceProgram is a separate process that asks the devices' drivers and writes lines to its
// standard output, so that a driver that hangs or crashes harms no other process.
//
// Ownership: it refers to its Env; its destructor ends the process. Threads: one. A process that
// dies or cannot be started is started again after a pause.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/os/env.h"

namespace berth::machine {

class DeviceProgram {
 public:
  /// `on_trouble` receives the reason when the process has to be started again.
  DeviceProgram(os::Env& env, os::SpawnSpec program,
                std::function<void(const std::string&)> on_trouble = {})
      : env_(&env), program_(std::move(program)), on_trouble_(std::move(on_trouble)) {}
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;
  ~DeviceProgram() { end(); }

  void watch(std::vector<os::Watch>& watches) const {
    watches.push_back({.fd = child_.out.number()});
  }
  /// When turn() must be called even if its watch is not ready.
  std::optional<Mono> deadline() const { return start_at_; }
  /// Reads what came (`ready`: its watch was ready), and starts the process when that is due.
  /// Returns whole lines without their ends.
  std::vector<std::string> turn(bool ready);

 private:
  void start();
  void end();
  void try_later(const std::string& because);

  os::Env* env_;
  os::SpawnSpec program_;
  std::function<void(const std::string&)> on_trouble_;
  os::Child child_;
  std::string unread_;  // of a line that has not ended
  std::optional<Mono> start_at_ = Mono{};
};

/// The pause until a driver is asked again: `every` with a jitter of a quarter.
Duration jittered(os::Env& env, Duration every);

}  // namespace berth::machine
