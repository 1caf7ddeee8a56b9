// The places of a flow's outputs: where a path of the flow leads, and what is there.
//
// Threads: any; each function uses its arguments only.
#pragma once

#include <string>

#include "berth/fileset/fileset.h"

namespace berth::run {

inline constexpr std::string_view kProtected =
    "it is protected and would be overwritten: use berth run --overwrite";

/// Returns true if the owner may not write what is at that place.
bool is_protected(os::Env& env, const std::string& place);

std::string parent_of(const std::string& path);
/// A path of a flow whose file is in that folder.
std::string place_in(const std::string& folder, const std::string& path);

/// The path that an output at `place` is written to: symbolic links at the place are followed, as
/// cp follows them. Errors: impossible, where the folder that they lead to is missing or cannot be
/// written, with what to do.
Result<std::string> behind_links(os::Env& env, const std::string& place);

/// Removes the write bits of all modes at the place; links are not followed.
Status make_read_only(os::Env& env, const fileset::Fileset& content, const std::string& place);
/// Takes from the files at the place the bits that their task took from the files it wrote.
Status narrow_modes(os::Env& env, const fileset::Fileset& content, const std::string& place);

}  // namespace berth::run
