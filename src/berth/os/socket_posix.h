// The Unix sockets of posix_env(), which never block and stand at paths of any length.
#pragma once

#include "berth/os/env.h"

namespace berth::os {

Result<Fd> listen_posix(Env& env, const std::string& path);
Result<std::optional<Fd>> accept_posix(Env& env, const Fd& listener);
Result<Fd> connect_posix(Env& env, const std::string& path);
Result<std::optional<std::size_t>> write_some_posix(const Fd& fd, std::string_view bytes);

}  // namespace berth::os
