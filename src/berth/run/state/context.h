// A Context is where runs live: the state directory with its store, and this machine with its
// ledger. A process has one; everything in run/ works on it. layout.h says what is where in the
// state directory.
//
// Ownership: the process owns the Context, which owns the store and refers to the Env; it outlives
// every run that works on it. Threads: one. Failure: as each function says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/capacity.h"
#include "berth/machine/devices/device_health.h"
#include "berth/machine/ledger/ledger.h"
#include "berth/machine/machine.h"
#include "berth/os/env.h"
#include "berth/run/state/layout.h"
#include "berth/store/store.h"

namespace berth::remote {
struct Cloud;
class Holders;
}  // namespace berth::remote

namespace berth::run {

struct Sources;

struct Context {
  os::Env* env = nullptr;
  /// The `berth` program, for runners in the background and for notifications: a path, or a name in
  /// PATH.
  std::string program = "/proc/self/exe";
  std::string state_directory;
  std::unique_ptr<store::Store> store;
  std::string ledger_directory;
  machine::CapacityOptions capacity;
  std::optional<machine::Devices> devices;  ///< Read by find_devices().
  /// Opens the sources of a run's allocs; where it is empty, all come from this machine.
  std::function<Result<Sources>(const store::RunRecord&)> sources = {};
  std::shared_ptr<remote::Holders> holders = {};  ///< Made with the first remote worker.
  const remote::Cloud* cloud = nullptr;           ///< Of tests, in place of the plugin.
  /// What tasks on this machine get instead of the environment of this process.
  std::optional<std::vector<std::pair<std::string, std::string>>> task_environment = {};
};

/// $BERTH_DB, else $XDG_STATE_HOME/berth, else ~/.local/state/berth.
Result<std::string> state_directory(os::Env& env);
/// Options for this machine as it is, with its machine file ($BERTH_MACHINE, else
/// /etc/berth/machine.yaml where there is one) and the disk on the state directory's volume.
machine::CapacityOptions capacity_options(os::Env& env, const std::string& state);
/// Makes the state directory (0700) and opens the store.
Result<Context> open_context(os::Env& env);
/// The same in that state directory, whatever the environment says.
Result<Context> open_context(os::Env& env, const std::string& state);

std::string run_directory(const Context& context, const std::string& run_name);
/// Reads the devices, unless that was done or `wanted` needs none: those that `gpus` names (as
/// CUDA_VISIBLE_DEVICES does), else all that Berth may use. The call may take seconds.
Status find_devices(Context& context, const Resources& wanted, const std::string& gpus = {});

}  // namespace berth::run
