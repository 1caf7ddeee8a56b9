// Plugins are parts of Berth that only some commands need, in shared objects of their own, because
// the libraries that they bring (libcurl brings some forty) would slow every start of Berth. A
// plugin is of the same build as the program; the name of its one symbol says so.
#pragma once

#include <string>

#include "berth/os/env.h"

namespace berth::os {

/// Loads `file` ("berth-cloud.so"), which stands beside the program or in ../lib/berth from there,
/// for as long as the process lives, and returns the address of `symbol`. Failure: not_found, where
/// the file or a library that it needs is missing; corrupt, where it is of another build.
Result<void*> load_plugin(Env& env, const std::string& file, const std::string& symbol);

}  // namespace berth::os
