// Explains why a text is not JSON, in words of Berth's instead of the parsing library's. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth {

/// Returns where and why parsing `text` failed: "line 3, column 7: expected a value, got 'NaN'
/// (JSON has no NaN: write null)". `byte` counts the bytes read when it failed, from 1, and
/// `library_message` is the parsing library's text, of which only the kind of error is used.
std::string explain_json_error(std::string_view text, std::size_t byte,
                               std::string_view library_message);

/// Returns a message of the JSON library without its tag: "[json.exception.type_error.302] type
/// must be string, but is null" gives "type must be string, but is null".
std::string_view without_library_tag(std::string_view message);

}  // namespace berth
