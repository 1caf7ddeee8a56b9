// The device guard compares the device memory that tasks use, as the driver reports it for their
// processes, with their shares: about once a second while any task has a part of a device.
//
// A process belongs to a task by its ancestors, its process group or session, or a variable that
// only this task's processes have. If the driver reports processes that are invisible here (of
// another pid namespace, say), a pid may mean another process: such figures are not certain.
//
// Ownership: it refers to its Env; its destructor ends the process that asks the driver. Threads:
// one. What cannot be determined is in `advisory`, each reason once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/machine/devices/device_figures.h"
#include "berth/machine/devices/device_program.h"
#include "berth/machine/devices/device_shares.h"

namespace berth::machine {

/// The shares that are a part of a device with an amount of memory.
std::vector<DeviceShare> parts_of(const std::vector<DeviceShare>& devices);

struct GuardedTask {
  std::int64_t id = 0;
  pid_t leader = 0;                 // of its process group
  std::string mark;                 // "BERTH_TASK=digits-3/17"; "": none
  std::vector<DeviceShare> shares;  // as parts_of() gives them
};

struct OverShare {
  std::int64_t task = 0;
  std::string uuid;
  std::int64_t has = 0, share = 0;  // bytes
  bool certain = true;
};

struct GuardReport {
  std::vector<OverShare> over;                                 // at every reading
  std::vector<std::pair<std::int64_t, std::string>> advisory;  // task, why its use is unknown
};

class DeviceGuard {
 public:
  /// `program` is the command that runs watch_figures(). `on_report` is called in a turn of the
  /// loop.
  DeviceGuard(os::Env& env, os::SpawnSpec program,
              std::function<void(const GuardReport&)> on_report)
      : env_(&env), program_(std::move(program)), on_report_(std::move(on_report)) {}
  /// Whether the driver is asked.
  bool asks() const { return running_.has_value(); }

  void add(GuardedTask task);
  void remove(std::int64_t id);

 private:
  void on_lines(const std::vector<std::string>& lines);
  void report_silence();
  GuardReport compare(const DeviceFigures& figures);
  void compare(const GuardedTask& task, const DeviceShare& share, const DeviceFigures& figures,
               const std::map<pid_t, const GuardedTask*>& owners, GuardReport& report);
  const GuardedTask* owner(pid_t pid) const;
  void advise(const GuardedTask& task, const std::string& because, GuardReport& report);

  os::Env* env_;
  os::SpawnSpec program_;
  std::optional<DeviceProgram> running_;
  std::vector<GuardedTask> tasks_;
  std::map<pid_t, int> hidden_;  // readings in a row that have the pid while it is invisible here
  std::set<std::string> advised_;
  std::function<void(const GuardReport&)> on_report_;
  os::Timer silent_{env_->loop(), [this] { report_silence(); }};
  os::Timer idle_{env_->loop(), [this] {
                    running_.reset();
                    silent_.set(std::nullopt);
                  }};
};

}  // namespace berth::machine
