// What has to be changed in a text so that a reader of YAML 1.1 takes it as people mean it: marks,
// characters that no text holds, stand for the others while it is read. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "berth/base/broken_yaml.h"

namespace berth {

/// What makes a text none: bytes that are not UTF-8, control characters, the marks.
std::optional<BrokenYaml> find_no_text(std::string_view text);

/// The text with marks for:
/// - the braces of every {name} that adjoins text before it, where YAML would begin a map;
/// - tabs behind the indentation of lines, where a block of text (`run: |`) may begin with one;
/// - U+0085, U+2028 and U+2029, which end no line.
/// In comments, quotes and blocks that changes nothing, since unmarked() changes it back.
std::string marked(std::string_view text);
std::string unmarked(std::string_view text);

/// Whether unmarked() has to look: false where the text holds no mark.
bool may_be_marked(std::string_view text);

}  // namespace berth
