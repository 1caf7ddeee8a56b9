// What berth/topology.h reads of the machine itself.
#include "berth/topology.h"

#include <algorithm>
#include <iterator>

#include "berth/machine/devices/devices.h"
#include "berth/os/env.h"

namespace berth::topology {

Result<Topology> discover() {
  const auto env = os::posix_env();
  return machine::discover_devices(*env, {});
}

Result<Topology> named(const std::string& name_or_path) {
  const auto env = os::posix_env();
  return machine::named_topology(*env, name_or_path);
}

Result<Topology> refresh_health(const Topology& earlier) {
  const auto env = os::posix_env();
  BERTH_ASSIGN(auto watch, machine::refresh_health(*env, {}, earlier, [](pid_t) { return false; }));
  Topology now = earlier;
  for (std::size_t i = 0; i < now.devices.size(); ++i) {
    now.devices[i].health = watch.health[i].health;
    now.devices[i].unhealthy_reason = watch.health[i].because;
  }
  std::ranges::move(watch.notes, std::back_inserter(now.notes));
  return now;
}

}  // namespace berth::topology
