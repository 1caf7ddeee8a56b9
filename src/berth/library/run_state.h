// The state of a run as people are shown it.
#pragma once

#include <string>

#include "berth/os/env.h"
#include "berth/store/store.h"

namespace berth::library {

/// Whether the run's runner is a process of another machine, as far as the store knows.
bool is_driven_elsewhere(os::Env& env, const store::RunRecord& run);
/// The recorded state, or "interrupted" when the run's runner died.
std::string state_now(os::Env& env, const store::RunRecord& run);

}  // namespace berth::library
