// A cluster whose every call is told: in the structured log, and as a trace that Chrome's tracing
// page and Perfetto open (a JSON array, one event a line, which need not be ended to be read).
#pragma once

#include <string_view>

#include "berth/cluster/cluster.h"
#include "berth/os/env.h"

namespace berth::cluster {

/// One thing that took from `begin` to `end`, in the row `lane` of `group`. `arguments`: a JSON
/// object. Ends with a comma and a newline.
std::string trace_event(std::string_view name, std::int64_t group, std::int64_t lane, Wall begin,
                        Wall end, std::string_view arguments);
/// The name that a group, or one of its rows, is shown by.
std::string trace_name(std::string_view name, std::int64_t group, std::optional<std::int64_t> lane);

/// `inner` is as before; `file` gets the calls and, once they end, the lives of the allocs. What
/// cannot be written there is lost. The nth cluster of a file is called `name` there.
std::unique_ptr<Cluster> tracing(os::Env& env, std::unique_ptr<Cluster> inner,
                                 const std::string& file, std::string_view name = "",
                                 std::int64_t nth = 0);

}  // namespace berth::cluster
