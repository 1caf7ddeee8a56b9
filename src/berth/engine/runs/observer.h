// The interface through which a client follows a run that it drives (engine/runs/drive.h):
// progress, ends of tasks, output, notes, and questions of passive trials.
#pragma once

#include "berth/run/drive/runner.h"

namespace berth::engine {

using run::Observer;
using run::Progress;
using run::Question;
using run::TaskEnd;

}  // namespace berth::engine
