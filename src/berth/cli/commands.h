// One function a command. Each returns the exit code, or an Error that main prints on stderr.
#pragma once

#include "berth/base/result.h"
#include "berth/cli/arguments.h"
#include "berth/os/env.h"

namespace berth::cli {

Result<int> run_command(os::Env& env, const Arguments& arguments);
Result<int> resume_command(os::Env& env, const Arguments& arguments);
Result<int> stop_command(os::Env& env, const Arguments& arguments);
Result<int> runs_command(os::Env& env, const Arguments& arguments);
Result<int> show_command(os::Env& env, const Arguments& arguments);
Result<int> best_command(os::Env& env, const Arguments& arguments);
Result<int> compare_command(os::Env& env, const Arguments& arguments);
Result<int> ask_command(os::Env& env, const Arguments& arguments);
Result<int> tell_command(os::Env& env, const Arguments& arguments);
Result<int> why_command(os::Env& env, const Arguments& arguments);
Result<int> logs_command(os::Env& env, const Arguments& arguments);
Result<int> machine_command(os::Env& env, const Arguments& arguments);
Result<int> topo_command(os::Env& env, const Arguments& arguments);
Result<int> place_command(os::Env& env, const Arguments& arguments);
Result<int> watch_devices_command(os::Env& env, const Arguments& arguments);
Result<int> retry_command(os::Env& env, const Arguments& arguments);
Result<int> rm_command(os::Env& env, const Arguments& arguments);
Result<int> prune_command(os::Env& env, const Arguments& arguments);
Result<int> wait_command(os::Env& env, const Arguments& arguments);
Result<int> top_command(os::Env& env, const Arguments& arguments);
Result<int> plan_command(os::Env& env, const Arguments& arguments);
Result<int> trace_command(os::Env& env, const Arguments& arguments);
Result<int> cache_command(os::Env& env, const Arguments& arguments);
Result<int> serve_command(os::Env& env, const Arguments& arguments);
Result<int> cluster_command(os::Env& env, const Arguments& arguments);
Result<int> agent_command(os::Env& env, const Arguments& arguments);
/// `berth` alone: what is running.
Result<int> overview_command(os::Env& env, const Arguments& arguments);

}  // namespace berth::cli
