// How posix_env() makes files where other users may make files too: a new file has a random name or
// none, is created exclusively, and no symbolic link of another user is followed.
#pragma once

#include <functional>

#include "berth/os/env.h"

namespace berth::os {

/// A place at the end of symbolic links.
struct LinkEnd {
  std::string path;
  bool is_handle = false;  ///< A link of /proc to an open file: only the kernel can follow it.
};

/// Follows the symbolic links at `path`, the last of which may lead to a missing file. Failure:
/// denied, where a link belongs to neither this user nor root.
Result<LinkEnd> follow_own_links(const std::string& path);

/// Opens the file, and makes it with `mode` where it is missing. Links are followed as
/// follow_own_links() does.
Result<int> open_or_make_posix(const std::string& path, int flags, mode_t mode);

/// Writes a new file next to `path`, and calls `finish` with its descriptor before it has a name.
/// The umask limits `mode`. Returns its random name; "" where nothing was at `path`, and the file
/// is there now. A call that fails leaves no file.
Result<std::string> write_new_file(Env& env, const std::string& path, std::string_view text,
                                   mode_t mode, const std::function<Status(int)>& finish);

Status replace_file_posix(Env& env, const std::string& path, std::string_view text, mode_t mode);

}  // namespace berth::os
