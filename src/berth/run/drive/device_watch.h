// A DeviceWatch follows the health of this machine's GPUs while a run lasts: no task starts on one
// that is out of service, and whoever follows the run is told which tasks hold it.
//
// Ownership: it owns the process that asks the drivers; it refers to the Context and the ActiveRun.
// Threads: one. Failure: no call fails; health that cannot be watched is noted once.
#pragma once

#include <optional>

#include "berth/machine/devices/health_watch.h"
#include "berth/run/drive/attempts.h"

namespace berth::run {

class DeviceWatch {
 public:
  DeviceWatch(ActiveRun& run, Context& context, Workers& workers, Leases& leases,
              Attempts& attempts)
      : run_(run), context_(context), workers_(workers), leases_(leases), attempts_(attempts) {}

  /// Starts watching, where the run uses devices.
  void begin();

 private:
  void on_update(machine::DeviceHealthUpdate update);
  std::string holders_of(const std::string& uuid);

  ActiveRun& run_;
  Context& context_;
  Workers& workers_;
  Leases& leases_;
  Attempts& attempts_;
  std::optional<machine::HealthWatch> health_;
};

}  // namespace berth::run
