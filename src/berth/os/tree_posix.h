// How posix_env() deals with whole trees and whole files; each function does what Env says of it.
#pragma once

#include "berth/os/env.h"

namespace berth::os {

bool shows_changes_posix(const std::string& path);
FileStatus::Kind kind_posix(mode_t mode);
Result<std::vector<TreeEntry>> entries_posix(const std::string& directory);
Result<std::vector<TreeEntry>> tree_posix(const std::string& directory, std::size_t most);
Status remove_tree_posix(Env& env, const std::string& path);
Status stamp_posix(const std::string& path, mode_t mode, Wall modified);
Status sync_all_posix(std::span<const std::string> paths);
/// Failure: interrupted, where a second stop signal came meanwhile.
Result<std::optional<Content>> copy_posix(Env& env, const std::string& from, const std::string& to,
                                          mode_t mode);

}  // namespace berth::os
