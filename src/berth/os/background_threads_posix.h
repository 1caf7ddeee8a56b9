// The BackgroundThreads of posix_env().
#pragma once

#include "berth/os/background_threads.h"

namespace berth::os {

std::unique_ptr<BackgroundThreads> background_threads_posix(std::size_t most_threads);

}  // namespace berth::os
