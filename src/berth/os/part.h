// Parts of berth that only some need, in shared objects of their own: what libraries they bring
// (libcurl some forty) would slow every start of berth. A part is of the same build as the program
// and says so by the name of its one symbol.
#pragma once

#include <string>

#include "berth/os/env.h"

namespace berth::os {

/// The address of `symbol` in `file` ("berth-cloud.so"), which stands beside the program or in
/// ../lib/berth from there; it stays loaded. not_found: no such file, or a library that it needs is
/// missing; corrupt: it is of another build.
Result<void*> load_part(Env& env, const std::string& file, const std::string& symbol);

}  // namespace berth::os
