// Work beside the loop, for posix_env().
#pragma once

#include "berth/os/aside.h"

namespace berth::os {

std::unique_ptr<Aside> aside_posix(std::size_t most_threads);

}  // namespace berth::os
