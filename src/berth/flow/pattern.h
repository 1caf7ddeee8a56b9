// Path patterns with named parts, as the sources of a foreach have them:
// "reads/{sample}_{lane}.fastq" names every file that "reads/*_*.fastq" matches, and gives it a
// `sample` and a `lane`. A part is a text of at least one byte without a slash; where several
// divisions of a name fit, earlier parts are as long as they can be. A name that comes twice stands
// for one text. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::flow {

inline constexpr std::size_t kMostParts = 8;  // names of one pattern

using Parts = std::vector<std::pair<std::string, std::string>>;

/// The pattern without its names, each replaced by a star, as fileset::glob() takes it.
std::string glob_of(std::string_view pattern);

/// The parts of `path` by name, in the order of the pattern, each name once; nullopt where the
/// pattern does not match.
std::optional<Parts> parts_of(std::string_view pattern, std::string_view path);

}  // namespace berth::flow
