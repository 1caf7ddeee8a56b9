// Where runs live: the state directory with its store, and the machine with its ledger. One Site a
// process; everything in run/ works on one.
// layout.h says what lies where in the state directory.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "berth/base/result.h"
#include "berth/machine/capacity.h"
#include "berth/machine/device_health.h"
#include "berth/machine/ledger.h"
#include "berth/machine/machine.h"
#include "berth/os/env.h"
#include "berth/run/layout.h"
#include "berth/store/store.h"

namespace berth::remote {
class Holders;
}

namespace berth::run {

struct Sources;

struct Site {
  os::Env* env = nullptr;
  std::string state_directory;
  std::unique_ptr<store::Store> store;
  std::string ledger_directory;
  machine::CapacityOptions capacity;
  std::optional<machine::Devices> devices;                               // once they are needed
  std::function<Result<Sources>(const store::RunRecord&)> sources = {};  // none: this machine
  std::shared_ptr<remote::Holders> holders = {};  // of files elsewhere, once they are needed
};

/// $BERTH_DB, else $XDG_STATE_HOME/berth, else ~/.local/state/berth.
Result<std::string> state_directory(os::Env& env);
/// What is not named otherwise: the live machine, its machine file ($BERTH_MACHINE, else
/// /etc/berth/machine.yaml where there is one), disk on the state directory's volume.
machine::CapacityOptions capacity_options(os::Env& env, const std::string& state);
/// Makes the state directory (0700) and opens the store.
Result<Site> open_site(os::Env& env);

std::string run_directory(const Site& site, const std::string& run_name);
/// Reads the devices, if that was not done yet and the request needs any: those that `gpus` names
/// (as CUDA_VISIBLE_DEVICES does), else all that Berth may use. May take seconds.
Status find_devices(Site& site, const Resources& wanted, const std::string& gpus = {});

}  // namespace berth::run
