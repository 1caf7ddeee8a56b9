// A run as a timeline for Perfetto or Chrome's tracing page: each attempt is a bar in a row of its
// machine; above them are the calls to the cluster.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/engine/context.h"

namespace berth::engine {

/// Returns the timeline in Chrome's JSON format. Errors: not_found; those of the store.
Result<std::string> trace_of(Context& context, std::string_view run);

}  // namespace berth::engine
