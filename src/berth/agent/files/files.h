// `berth-agent files DIR` is the far end of a transfer queue: it receives and sends files of its
// machine in frames (frames.h), one exchange after another.
//
//   f… a       →  m… .          which of that fileset's objects are missing here, from where on
//   o d… o d…  →                objects; none is answered, a wrong one ends the connection
//   p PATH     →  .             the fileset that was asked about last stands at PATH
//   P PATH     →  .             the same; its files are recorded for w
//   w PATH     →  f .           "FILES BYTES": files below PATH that tasks wrote and that were
//                               neither sent (sent_files.h) nor captured; "" is all of DIR
//   c PATH     →  f… .          what stands at PATH, as a fileset
//   g PIECE    →  d… .          an object of that fileset
//   r PATH     →  .             nothing stands at PATH any more
//   s PATH     →  .             there is such a file
//   any        →  e KIND TEXT
//
// Paths of p, c and r are below DIR. The objects live in $XDG_CACHE_HOME/berth/objects for all
// connections to this machine, so that an object is brought once only.
#pragma once

#include <string>

#include "berth/os/env.h"

namespace berth::agent {

Result<std::string> objects_directory(os::Env& env);

/// Serves its standard input and output until the connection ends.
Status serve_files(os::Env& env, const std::string& directory);

}  // namespace berth::agent
