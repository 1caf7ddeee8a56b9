#include "berth/base/json_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "berth/base/text.h"

namespace berth {
namespace {

using Phrases = std::span<const std::pair<std::string_view, std::string_view>>;

/// What the grammar expects, by what the library was parsing.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kExpected{{
    {"; expected end of input", "the end of the text"},
    {"while parsing value", "a value"},
    {"while parsing object key", "a name in double quotes"},
    {"while parsing object separator", "':'"},
    {"while parsing object", "',' or '}'"},
    {"while parsing array", "',' or ']'"},
}};

/// Errors within one text or number.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kProblems{{
    {"missing closing quote", "a text without its closing quote"},
    {"control character", "a control character in a text; write \\n or \\t"},
    {"UTF-8", "bytes that are not UTF-8"},
    {"surrogate", "an incomplete \\u escape in a text"},
    {"backslash", "an unknown escape in a text; write \\\\ for a backslash"},
    {"'\\u'", "an incomplete \\u escape in a text"},
    {"invalid number", "a malformed number"},
}};

/// What people write out of habit from another language.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kHabits{{
    {"NaN", "JSON has no NaN: write null"},
    {"nan", "JSON has no NaN: write null"},
    {"Infinity", "JSON has no infinity: write null or a text"},
    {"-Infinity", "JSON has no infinity: write null or a text"},
    {"None", "write null"},
    {"True", "write true"},
    {"False", "write false"},
    {"'", "JSON takes double quotes"},
    {"/", "JSON has no comments"},
    {"#", "JSON has no comments"},
}};

std::string_view phrase_for(Phrases phrases, std::string_view message) {
  for (const auto& [fragment, phrase] : phrases)
    if (message.find(fragment) != message.npos) return phrase;
  return {};
}

constexpr bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '-' || c == '+' || c == '.';
}

struct Token {
  std::size_t at = 0;  // bytes from the beginning of the text
  std::string_view text;
};

/// Returns the word or quoted text around the byte where parsing failed, or that single character.
Token token_at(std::string_view text, std::size_t byte) {
  std::size_t begin = std::min(byte == 0 ? 0 : byte - 1, text.size());
  if (begin == text.size()) return {begin, {}};
  if (text[begin] == '"') {  // the end of a text in the wrong place
    const auto opening = begin == 0 ? text.npos : text.rfind('"', begin - 1);
    const std::size_t from = opening == text.npos ? begin : opening;
    return {from, text.substr(from, begin + 1 - from)};
  }
  if (!is_word(text[begin])) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text, begin), 1);
    return {begin, text.substr(begin, length)};
  }
  std::size_t end = begin;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  while (end < text.size() && is_word(text[end])) ++end;
  return {begin, text.substr(begin, end - begin)};
}

std::string place_of(std::string_view text, std::size_t at) {
  const auto before = text.substr(0, at);
  const auto newline = before.rfind('\n');
  const std::size_t column = newline == before.npos ? at : at - newline - 1;
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1, column + 1);
}

/// Returns the first line that is neither blank nor a comment.
std::string_view first_line(std::string_view text) {
  for (const auto line : split(text, '\n'))
    if (const auto content = trim(line); !content.empty() && !content.starts_with('#'))
      return content;
  return {};
}

/// "key: value", "- item" or "---", which no JSON text begins with.
bool looks_like_yaml(std::string_view text) {
  const auto line = first_line(text);
  if (line == "---" || line.starts_with("- ")) return true;
  const auto name = line.substr(0, line.find(':'));
  if (name.empty() || name.size() == line.size() || !std::ranges::all_of(name, is_word))
    return false;
  const auto rest = line.substr(name.size() + 1);
  return rest.empty() || rest.starts_with(' ') || rest.starts_with('\r');
}

}  // namespace

std::string explain_json_error(std::string_view text, std::size_t byte,
                               std::string_view library_message) {
  constexpr std::size_t kTokenMost = 30;
  if (trim(text).empty()) return "it is empty";
  if (looks_like_yaml(text))
    return fmt::format("it looks like YAML ('{}'); JSON is expected here, such as {{\"key\": 1}}",
                       clip(first_line(text), kTokenMost));
  const auto token = token_at(text, byte);
  const auto problem = phrase_for(kProblems, library_message);
  if (!problem.empty()) return fmt::format("{}: {}", place_of(text, token.at), problem);
  const auto expected = phrase_for(kExpected, library_message);
  std::string found = token.text.empty() ? "the end of the text"
                                         : fmt::format("'{}'", clip(token.text, kTokenMost));
  const auto before = trim(text.substr(0, token.at));
  if (before.ends_with(',') && (token.text == "}" || token.text == "]"))
    found += fmt::format(" (remove the comma before '{}')", token.text);
  const auto* const habit =
      std::ranges::find(kHabits, token.text, &decltype(kHabits)::value_type::first);
  if (habit != kHabits.end()) found += fmt::format(" ({})", habit->second);
  return fmt::format("{}: expected {}, got {}", place_of(text, token.at),
                     expected.empty() ? "JSON" : expected, found);
}

std::string_view without_library_tag(std::string_view message) {
  const auto end = message.find("] ");
  return message.starts_with("[json.exception") && end != message.npos ? message.substr(end + 2)
                                                                       : message;
}

}  // namespace berth
