// The command line of apptainer, or of singularity, which is the same: engines that run an image
// from one file, as an ordinary process of the user. See container.h. Pure.
#pragma once

#include "berth/exec/container.h"

namespace berth::exec {

/// Does what engine_command() says. Variables reach the process through the engine's own
/// (APPTAINERENV_…), so that their values show in no list of processes.
EngineCommand image_file_command(const ContainerSpec& spec);

}  // namespace berth::exec
