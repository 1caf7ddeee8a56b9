// A process of its own that asks the devices' drivers and writes one line at a time to its standard
// output, so that a driver that hangs or crashes takes nobody with it.
//
// Ownership: refers to its Env; its end ends the process. Threads: one. Failure: a process that
// dies or cannot be started is started again after a while.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/os/env.h"
#include "berth/os/loop.h"

namespace berth::machine {

class DeviceProgram {
 public:
  /// `on_lines` gets whole lines without their ends, as they come, in a turn of the loop;
  /// `on_trouble` is told why the process has to be started again. The process starts in the next
  /// turn.
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

/// The pause until a driver is asked again: `every`, a quarter more or less by chance.
Duration jittered(os::Env& env, Duration every);

}  // namespace berth::machine
