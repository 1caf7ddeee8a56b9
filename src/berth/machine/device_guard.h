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
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/machine/device_figures.h"
#include "berth/machine/device_program.h"
#include "berth/machine/device_shares.h"

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
  /// `program` is the command that runs watch_figures().
  DeviceGuard(os::Env& env, os::SpawnSpec program) : env_(&env), program_(std::move(program)) {}

  void add(GuardedTask task);
  void remove(std::int64_t id);

  void watch(std::vector<os::Watch>& watches) const;
  std::optional<Mono> deadline() const;
  GuardReport turn(bool ready);

 private:
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
  std::optional<Mono> silent_since_, idle_since_;
};

}  // namespace berth::machine
