#pragma once

#include "berth/base/result.h"
#include "berth/cli/arguments.h"
#include "berth/os/env.h"

namespace berth::cli {

Result<int> migrate_command(os::Env& env, const Arguments& arguments);

}  // namespace berth::cli
