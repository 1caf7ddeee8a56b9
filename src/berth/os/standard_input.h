// The standard input of this process, for programs that hand it to others.
#pragma once

#include "berth/os/env.h"

namespace berth::os {

/// A descriptor of the standard input. Failure: io, where it is closed.
Result<Fd> open_standard_input(Env& env);

/// True if a pipe, a socket or a file at standard input has bytes that can be read now.
bool standard_input_has_data();

}  // namespace berth::os
