// The way into an agent from elsewhere: standard input and output become those of its socket, so
// that `ssh host berth-agent stdio DIR` is to a runner what that socket is.
//
// Threads: one. Failure: not_found where no agent listens, which standard output says too.
#pragma once

#include <string>

#include "berth/os/env.h"

namespace berth::agent {

/// Returns when either side has ended, or a stop signal came.
Status serve_stdio(os::Env& env, const std::string& directory);

}  // namespace berth::agent
