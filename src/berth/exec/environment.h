// An Environment is an ordered list of variables. Where a name stands in it twice the first value
// counts, as for getenv().
#pragma once

#include <string>

#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::exec {

/// The environment of this process without the variables that name devices: each task is given
/// those for itself.
Environment inherited_environment(os::Env& env);
/// Replaces the variable's value, or adds the variable.
void set(Environment& environment, std::string name, std::string value);
/// Adds the variable where it is not there; replaces it only if `decided`: what a task's author set
/// stands, unless the placement itself decides it.
void decide(Environment& environment, std::string name, std::string value, bool decided = false);
/// Sets each variable of `over` in their order.
void set(Environment& environment, const Environment& over);

}  // namespace berth::exec
