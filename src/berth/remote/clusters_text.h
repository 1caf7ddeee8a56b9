// A file of clusters as text, changed where one entry stands: comments and all else stay as they
// are. Its map may be written in lines (block style) or in braces (flow style, as JSON is). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::remote {

/// The text with an ssh cluster of these hosts added, in the style of the others.
std::string add_entry(std::string_view text, const std::string& name,
                      const std::vector<std::string>& hosts);

/// The text without the entry; nullopt where none is found. Whether what is left is what was meant
/// only a reader of YAML can say.
std::optional<std::string> cut_entry(std::string_view text, const std::string& name);

}  // namespace berth::remote
