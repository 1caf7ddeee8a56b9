// Dependency files in the syntax of make, as compilers write them (gcc -MMD): which files a task
// has read. Pure.
#pragma once

#include <string_view>

#include "berth/flow/flow.h"

namespace berth::flow {

/// The prerequisites of all rules, sorted, each once: with the escapes of make undone ("\ ", "\#",
/// "\:", "$$"), lines that a backslash continues joined, and rules without any (of -MP) passed
/// over. Errors: invalid, with the line.
Result<Words> read_depfile(std::string_view text);

/// Where a path of a depfile lies that was written in `directory`, a copy of a part of `folder`:
/// from the folder if it is in one of the two ("src/a.h"), else absolute. Both are absolute.
std::string place_of_dependency(std::string_view path, const std::string& directory,
                                const std::string& folder);

}  // namespace berth::flow
