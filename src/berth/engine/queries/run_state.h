// The state of a run as commands, pages, metrics and libraries show it.
#pragma once

#include <string>
#include <string_view>

#include "berth/os/env.h"
#include "berth/store/store.h"

namespace berth::engine {

/// Whether the run's runner is a process of another machine, as far as the store knows.
bool is_driven_elsewhere(os::Env& env, const store::RunRecord& run);
/// The recorded state: "queued", "running", "done", "failed" or "stopped"; or "interrupted" when
/// the run's runner died. `state`: the state directory; "" for that of the environment.
std::string state_now(os::Env& env, const store::RunRecord& run, const std::string& state = "");
/// Returns true if the run's runner lives in another PID namespace of this machine, such as a
/// container: it cannot be signalled from here.
bool is_driven_in_container(os::Env& env, const store::RunRecord& run,
                            const std::string& state = "");
/// Returns true for "queued" and "running": the run will change without a further command.
bool is_under_way(std::string_view state);

}  // namespace berth::engine
