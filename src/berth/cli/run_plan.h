#pragma once

#include "berth/base/result.h"
#include "berth/experiment/program.h"
#include "berth/run/site.h"

namespace berth::cli {

/// Prints where the tasks of the program, which check_program() has passed, would run now.
Result<int> show_plan(run::Site& site, const experiment::Program& program, bool json);

}  // namespace berth::cli
