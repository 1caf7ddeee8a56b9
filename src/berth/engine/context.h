// What the functions of the engine work on: the store, the state directory and the environment, and
// how a client looks up a run by its name.
#pragma once

#include "berth/run/state/context.h"
#include "berth/run/state/find_run.h"

namespace berth::engine {

using run::Context;
using run::database_file;
using run::find_run;
using run::find_task;
using run::kLastRun;
using run::open_context;
using run::replace_last_run;
using run::state_directory;

}  // namespace berth::engine
