// A DeviceProgram is a separate process that asks the devices' drivers and writes lines to its
// standard output, so that a driver that hangs or crashes harms no other process.
//
// Ownership: it refers to its Env; its destructor ends the process. Threads: one. A process that
// dies or cannot be started is started again after a pause.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/os/env.h"
#include "berth/os/loop.h"
#include "berth/os/spawn.h"

namespace berth::machine {

class DeviceProgram {
 public:
  /// `on_lines` receives whole lines without their ends, as they come, in a turn of the loop;
  /// `on_trouble` receives the reason when the process has to be started again. The process
  /// starts in the next turn.
  DeviceProgram(os::Env& env, os::SpawnSpec program,
                std::function<void(std::vector<std::string>)> on_lines,
                std::function<void(const std::string&)> on_trouble = {});
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;
  ~DeviceProgram() { end(); }

 private:
  void read();
  void start();
  void end();
  void try_later(const std::string& because);

  os::Env* env_;
  os::SpawnSpec program_;
  std::function<void(std::vector<std::string>)> on_lines_;
  std::function<void(const std::string&)> on_trouble_;
  os::Child child_;
  std::string unread_;  // of a line that has not ended
  os::Poll prints_;
  os::Timer starts_;
};

/// The pause until a driver is asked again: `every` with a jitter of a quarter.
Duration jittered(os::Env& env, Duration every);

}  // namespace berth::machine
