// The command line of bubblewrap (bwrap), which shows a task this machine's system, read only, its
// own directory, and nothing else: the homes of people, their data and their mounts are not there.
// See container.h. Pure.
#pragma once

#include "berth/exec/container.h"

namespace berth::exec {

/// Does what engine_command() says. The process is in the task's control group and process group;
/// TERM reaches it, and not bubblewrap, which ends with it.
EngineCommand sandbox_command(const ContainerSpec& spec);

}  // namespace berth::exec
