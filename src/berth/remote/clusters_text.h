// These functions change one entry in the text of a file of clusters; comments and all else stay as
// they are. The file's map may be written in lines (block style) or in braces (flow style, as JSON
// is). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::remote {

/// The text with an ssh cluster of these hosts added, in the style of the others.
std::string add_entry(std::string_view text, const std::string& name,
                      const std::vector<std::string>& hosts);

/// The text without the entry; nullopt where none is found. Only a reader of YAML can say whether
/// what is left is what was meant.
std::optional<std::string> cut_entry(std::string_view text, const std::string& name);

}  // namespace berth::remote
