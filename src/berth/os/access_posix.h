// How posix_env() makes files and directories for the user: with the access that mkdir and cp would
// give them. Each function does what Env says of it.
#pragma once

#include "berth/os/env.h"

namespace berth::os {

Status make_user_directory_posix(const std::string& path, mode_t mode);
Status replace_user_file_posix(Env& env, const std::string& path, std::string_view text);
Status copy_access_posix(const std::string& from, const std::string& to, mode_t denied);
Result<std::string> link_target_posix(const std::string& path);
/// The umask of this process.
mode_t umask_posix();

}  // namespace berth::os
