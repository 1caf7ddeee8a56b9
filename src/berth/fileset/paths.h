// Which paths and links may stand in a fileset. Pure.
#pragma once

#include <string_view>

namespace berth::fileset {

/// Names between single slashes, none of them "." or "..", no NUL; at most kMostPath bytes.
bool safe_path(std::string_view path);

/// Returns true for a target that a symbolic link can have: not empty, no NUL, at most kMostPath
/// bytes.
bool valid_target(std::string_view target);

/// Whether a link at `path` that leads to `target` stays in the tree wherever that is put:
/// relative, and all its ".." in front and fewer than the directories it stands in. (In front they
/// climb real directories; behind a name they could climb out of another link's.)
bool safe_target(std::string_view path, std::string_view target);

}  // namespace berth::fileset
