// Whole trees and whole files, for posix_env().
#pragma once

#include "berth/os/env.h"

namespace berth::os {

FileStatus::Kind kind_posix(mode_t mode);
Result<std::vector<TreeEntry>> entries_posix(const std::string& directory);
Result<std::vector<TreeEntry>> tree_posix(const std::string& directory, std::size_t most);
Status remove_tree_posix(Env& env, const std::string& path);
Status stamp_posix(const std::string& path, mode_t mode, Wall modified);
Status sync_all_posix(std::span<const std::string> paths);
/// interrupted: a second stop signal came.
Result<std::optional<Content>> copy_posix(Env& env, const std::string& from, const std::string& to,
                                          mode_t mode);

}  // namespace berth::os
