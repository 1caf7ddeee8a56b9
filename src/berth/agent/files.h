// The files of a machine elsewhere: what `berth-agent files DIR` takes in and gives out, in frames
// (frames.h), one exchange after another.
//
//   f… a       →  m… .          what of that fileset's objects is missing here, from where on
//   o d… o d…  →                one after another; none is answered, a wrong one ends it all
//   p PATH     →  .             the fileset last asked about stands there
//   c PATH     →  f… .          what stands there, as a fileset
//   g PIECE    →  d… .          an object of it
//   r PATH     →  .             nothing stands there
//   s PATH     →  .             such a file is here
//   any        →  e KIND TEXT
//
// Paths of p, c and r are below DIR. Objects live in $XDG_CACHE_HOME/berth/objects, for all that go
// through this machine: what was brought once is not brought again.
#pragma once

#include <string>

#include "berth/os/env.h"

namespace berth::agent {

/// Where the objects of this machine are.
Result<std::string> objects_directory(os::Env& env);

/// Until the connection ends.
Status serve_files(os::Env& env, const std::string& directory);

}  // namespace berth::agent
