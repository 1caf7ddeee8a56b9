#include "berth/base/visible.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "berth/base/text.h"

namespace berth {
namespace {

constexpr char kHeld = '\xc2';  // begins U+0080 to U+00BF, of which the first 32 are controls

bool is_control(unsigned char byte) {
  return (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7f;
}

int bytes_behind(unsigned char first) {
  return first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
}

bool is_harmless(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t'; });
}

}  // namespace

bool turns_writing(char32_t character) {
  struct Range {
    char32_t first, last;
  };
  constexpr std::array kTurning{Range{0x61c, 0x61c}, Range{0x200e, 0x200f}, Range{0x2028, 0x202e},
                                Range{0x2066, 0x206f}};
  return std::ranges::any_of(kTurning, [&](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

std::string visible_json(std::string_view json) {
  if (is_harmless(json)) return std::string(json);
  std::string result;
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t bytes = std::max<std::size_t>(1, utf8_length(json, at));
    const char32_t code = utf8_code(json, at);
    const bool is_space = code == '\n' || code == '\r' || code == '\t';
    const bool is_control = (code > 0 && code < 0x20 && !is_space) || (code >= 0x7f && code < 0xa0);
    if (is_control || turns_writing(code))
      result += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    else
      result.append(json, at, bytes);
    at += bytes;
  }
  return result;
}

std::string visible_text(std::string_view text) {
  if (is_harmless(text)) return std::string(text);
  const std::string shown = Visible()(text);
  std::string result;
  for (std::size_t at = 0; at < shown.size();) {
    const std::size_t bytes = std::max<std::size_t>(1, utf8_length(shown, at));
    const char32_t code = utf8_code(shown, at);
    if (shown[at] == '\r')
      result += "^M";
    else if (turns_writing(code))
      result += fmt::format("<{:x}>", static_cast<std::uint32_t>(code));
    else
      result.append(shown, at, bytes);
    at += bytes;
  }
  return result;
}

std::string Visible::operator()(std::string_view part) {
  std::string shown;
  for (const char character : part) {
    const auto byte = static_cast<unsigned char>(character);
    const bool continues = byte >= 0x80 && byte < 0xc0;
    const bool is_upper_control = byte >= 0x80 && byte < 0xa0 && (is_held_ || expected_ == 0);
    if (is_held_ && !is_upper_control) shown += kHeld;
    is_held_ = character == kHeld;
    expected_ = continues && expected_ > 0 ? expected_ - 1 : bytes_behind(byte);
    if (is_upper_control)
      shown += fmt::format("<{:02x}>", byte);
    else if (is_control(byte))
      shown += {'^', static_cast<char>(byte ^ 0x40)};
    else if (!is_held_)
      shown += character;
  }
  return shown;
}

}  // namespace berth
