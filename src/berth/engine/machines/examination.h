// The examination of an installation: what this machine lets Berth do, why not more, and what the
// user can do about it.
//
// The functions read through the Env. None changes anything, except for one small file in the state
// directory, which is written, synced and removed. Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/names.h"
#include "berth/engine/machines/machine.h"

namespace berth::engine {

struct Finding {
  enum class State : std::uint8_t {
    good,
    optional,  ///< It is missing, and only some need it.
    faulty,    ///< There is something to do.
  };
  std::string topic;  ///< "limits", "gpus", "state", …
  State state = State::good;
  std::string found;
  std::string advice;  ///< What to do; "" of what is good.
};
inline constexpr auto kFindingStates =
    names<Finding::State>({{Finding::State::good, "ok"},
                           {Finding::State::optional, "optional"},
                           {Finding::State::faulty, "to do"}});

/// The versions of this berth, of the agent beside it as `agent` told it, of the kernel and of the
/// C library. An agent of another version is a fault.
Finding examine_versions(os::Env& env, const Result<std::string>& agent, std::string_view libc);
/// Whether tasks are held to their limits of memory, processor, cores and processes.
Finding examine_limits(os::Env& env, const LimitsReport& limits);
/// The GPUs of `devices`, those that are out of service, and cards on the PCI bus whose driver does
/// not answer. `root`: prefix of /proc, /sys and /dev, "" live.
std::vector<Finding> examine_devices(os::Env& env, const Result<machine::Devices>& devices,
                                     const std::string& root = "");
/// The state directory, the room on its volume, how long a sync takes there, and whether its store
/// opened, of which `store` tells how many runs it has.
std::vector<Finding> examine_state(os::Env& env, const Result<std::size_t>& store);
/// Whether the allocs of this machine can be written down in the ledger's directory.
Finding examine_ledger(os::Env& env);

/// A machine or a partition of a cluster, or a whole cluster, and whether it answered.
struct Reached {
  std::string cluster;
  std::string what;  ///< "gpu-box"; "" of the whole cluster.
  Status status;
};
/// `reached`: failure where the file of clusters cannot be read.
std::vector<Finding> examine_clusters(const Result<std::vector<Reached>>& reached);
/// The programs that some tasks need: container engines, bubblewrap, ssh.
std::vector<Finding> examine_tools(os::Env& env);

/// The findings of all examinations, which examine() returns.
struct Examination {
  std::vector<Finding> findings;
  std::size_t faults() const;  ///< The number of faulty findings.
};
/// Examines everything; `offline`: without contacting clusters.
Examination examine(os::Env& env, bool offline);

}  // namespace berth::engine
