// How much longer tasks take, as far as the tasks that ended before them show.
#pragma once

#include "berth/run/state/task_times.h"

namespace berth::engine {

using run::TaskTimes;

}  // namespace berth::engine
