// tracing() records every call of a cluster: in the structured log, and as a trace for Chrome's
// tracing page and Perfetto, which is a JSON array with one event a line (they also read an array
// that was not ended).
#pragma once

#include <string_view>

#include "berth/cluster/cluster.h"
#include "berth/os/env.h"

namespace berth::cluster {

/// The line of an event that lasted from `begin` to `end`, in the row `lane` of `group`.
/// `arguments` is a JSON object. The line ends with a comma and a newline.
std::string trace_event(std::string_view name, std::int64_t group, std::int64_t lane, Wall begin,
                        Wall end, std::string_view arguments);
/// The line that names a group, or one of its rows.
std::string trace_name(std::string_view name, std::int64_t group, std::optional<std::int64_t> lane);

/// A cluster that does what `inner` does and writes the calls to `file`, and the life of each alloc
/// once that ends. What cannot be written is lost. `name` is how the nth cluster of the file is
/// shown.
std::unique_ptr<Cluster> tracing(os::Env& env, std::unique_ptr<Cluster> inner,
                                 const std::string& file, std::string_view name = "",
                                 std::int64_t nth = 0);

}  // namespace berth::cluster
