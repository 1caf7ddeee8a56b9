// What the functions of the engine work on: the store, the state directory and the environment.
#pragma once

#include "berth/run/context.h"

namespace berth::engine {

using run::Context;
using run::open_context;
using run::state_directory;

}  // namespace berth::engine
