// Small pure functions on text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
/// Words between runs of blanks and tabs.
std::vector<std::string_view> words(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
/// As a variable of the environment is called: "in.ref-1" gives IN_REF_1.
std::string variable_name(std::string_view name);
/// At most `most` bytes, control characters made visible, for use within a message.
std::string clip(std::string_view text, std::size_t most = 80);
/// Returns the candidate with the smallest edit distance to `text`, if at most half of the letters
/// differ.
std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);
/// Returns the nearest candidate if at most a third of the letters differ.
std::string_view nearest_of(std::string_view text, std::span<const std::string> candidates);
/// Returns the candidate that `text` is probably a misspelling of: the same letters in another
/// case, or one letter wrong (two, from eight letters on) where both have at least four; "" for
/// none.
std::string_view near_miss(std::string_view text, std::span<const std::string> candidates);
/// Escaped for /bin/sh: bare where it is made only of [A-Za-z0-9_@%+=:,./-], else in quotes.
std::string shell_quote(std::string_view text);
/// The text as a JSON string, quotes and all.
std::string json_quote(std::string_view text);
/// Bytes of `text` that are UTF-8 kept, others replaced by '?', so that JSON takes it.
std::string valid_utf8(std::string_view text);
/// The bytes of the UTF-8 character that begins there; 0: none does.
std::size_t utf8_length(std::string_view text, std::size_t at);
/// The number of the UTF-8 character that begins there; 0: none does.
char32_t utf8_code(std::string_view text, std::size_t at);

}  // namespace berth
