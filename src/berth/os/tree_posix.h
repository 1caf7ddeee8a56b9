// Whole trees and whole files, for posix_env().
#pragma once

#include "berth/os/env.h"

namespace berth::os {

Result<std::vector<TreeEntry>> tree_posix(const std::string& directory, std::size_t most);
/// All of one open file into another, empty one.
Status copy_posix(int from, int to);

}  // namespace berth::os
