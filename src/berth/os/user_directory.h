// A user's files of each kind have a directory, by the convention of the XDG base directories.
#pragma once

#include <optional>
#include <string>

#include "berth/os/env.h"

namespace berth::os {

struct UserDirectory {
  const char* variable;  ///< Its value is the directory, where that is an absolute path.
  const char* in_home;   ///< The directory otherwise, from the home directory on.
};
inline constexpr UserDirectory kStateHome{"XDG_STATE_HOME", "/.local/state"};
inline constexpr UserDirectory kCacheHome{"XDG_CACHE_HOME", "/.cache"};
inline constexpr UserDirectory kConfigHome{"XDG_CONFIG_HOME", "/.config"};

/// Berth's own directory within that of the user, such as ~/.cache/berth; nullopt where the
/// environment names no home. The directory need not exist.
inline std::optional<std::string> own_directory(Env& env, const UserDirectory& of) {
  if (const auto named = env.variable(of.variable); named && named->starts_with('/'))
    return *named + "/berth";
  if (const auto home = env.variable("HOME"); home && home->starts_with('/'))
    return *home + of.in_home + "/berth";
  return std::nullopt;
}

}  // namespace berth::os
