#include "berth/cli/top/keys.h"

#include <array>
#include <optional>
#include <utility>

#include "berth/base/text.h"

namespace berth::cli {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::size_t kLongestSequence = 32;

using Kind = KeyPress::Kind;

// What xterm, the Linux console, tmux and screen send behind "ESC [" and "ESC O".
constexpr std::array kFinals{std::pair{'A', Kind::up},    std::pair{'B', Kind::down},
                             std::pair{'C', Kind::right}, std::pair{'D', Kind::left},
                             std::pair{'H', Kind::home},  std::pair{'F', Kind::end},
                             std::pair{'M', Kind::enter}};
constexpr std::array kNumbered{std::pair{"1", Kind::home},    std::pair{"4", Kind::end},
                               std::pair{"5", Kind::page_up}, std::pair{"6", Kind::page_down},
                               std::pair{"7", Kind::home},    std::pair{"8", Kind::end}};
constexpr std::array kFunctions{
    std::pair{"11", "1"}, std::pair{"12", "2"},  std::pair{"13", "3"},  std::pair{"14", "4"},
    std::pair{"15", "5"}, std::pair{"17", "6"},  std::pair{"18", "7"},  std::pair{"19", "8"},
    std::pair{"20", "9"}, std::pair{"21", "10"}, std::pair{"23", "11"}, std::pair{"24", "12"}};

/// Of "ESC [ PARAMETERS FINAL" or "ESC O FINAL".
KeyPress key_of(bool is_ss3, std::string_view parameters, char final) {
  const std::string_view number = parameters.substr(0, parameters.find(';'));
  if (final == '~') {
    for (const auto& [code, kind] : kNumbered)
      if (number == code) return {kind};
    for (const auto& [code, name] : kFunctions)
      if (number == code) return {Kind::function, name};
    return {};
  }
  if (final >= 'P' && final <= 'S' && (is_ss3 || number.size() == 1))
    return {Kind::function, std::string(1, static_cast<char>(final - 'P' + '1'))};
  for (const auto& [letter, kind] : kFinals)
    if (final == letter) return {kind};
  return {};
}

/// The key that the bytes begin with, and how many it takes; nullopt: its end is not there yet.
std::optional<std::pair<KeyPress, std::size_t>> sequence(std::string_view bytes) {
  if (bytes.size() < 2) return std::nullopt;
  const char second = bytes[1];
  if (second == kEscape || (second != '[' && second != 'O'))
    return std::pair{KeyPress{Kind::escape}, std::size_t{1}};
  if (second == '[' && bytes.size() > 2 && bytes[2] == '[') {  // F1 to F5 of the Linux console
    if (bytes.size() < 4) return std::nullopt;
    const bool known = bytes[3] >= 'A' && bytes[3] <= 'E';
    return std::pair{
        known ? KeyPress{Kind::function, std::string(1, static_cast<char>(bytes[3] - 16))}
              : KeyPress{},
        std::size_t{4}};
  }
  for (std::size_t at = 2; at < bytes.size(); ++at) {
    const char c = bytes[at];
    if (c >= 0x40 && c <= 0x7e)
      return std::pair{key_of(second == 'O', bytes.substr(2, at - 2), c), at + 1};
    if (c < 0x20 || at > kLongestSequence) return std::pair{KeyPress{}, at};  // it is none
  }
  return std::nullopt;
}

KeyPress control(char byte) {
  switch (byte) {
    case '\r':
    case '\n': return {Kind::enter};
    case '\t': return {Kind::tab};
    case '\b':
    case '\x7f': return {Kind::backspace};
    case '\x15': return {Kind::clear_line};
    case '\x0c': return {Kind::redraw};
    case '\x0e': return {Kind::down};  // Ctrl-N
    case '\x10': return {Kind::up};    // Ctrl-P
    case '\x02': return {Kind::page_up};
    case '\x06': return {Kind::page_down};
    default: return {};
  }
}

/// Whether more bytes may make a character of these.
bool may_become_character(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const std::size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
  if (first >= 0xf5 || bytes.size() >= wanted) return false;
  for (const char c : bytes.substr(1))
    if ((static_cast<unsigned char>(c) & 0xc0U) != 0x80U) return false;
  return true;
}

}  // namespace

std::vector<KeyPress> Keys::operator()(std::string_view part) {
  open_ += part;
  std::vector<KeyPress> keys;
  std::size_t at = 0;
  while (at < open_.size()) {
    const std::string_view rest = std::string_view(open_).substr(at);
    const auto byte = static_cast<unsigned char>(rest[0]);
    std::pair<KeyPress, std::size_t> next{{}, 1};
    if (rest[0] == kEscape) {
      auto found = sequence(rest);
      if (!found) break;
      next = *std::move(found);
    } else if (byte < 0x20 || byte == 0x7f) {
      next.first = control(rest[0]);
    } else if (const std::size_t length = utf8_length(rest, 0); length > 0) {
      next = {{Kind::text, std::string(rest.substr(0, length))}, length};
    } else if (may_become_character(rest)) {
      break;
    }
    keys.push_back(std::move(next.first));
    at += next.second;
  }
  open_.erase(0, at);
  return keys;
}

std::vector<KeyPress> Keys::end() {
  const std::string open = std::exchange(open_, {});
  return open == std::string(1, kEscape) ? std::vector{KeyPress{Kind::escape}}
                                         : std::vector<KeyPress>{};
}

}  // namespace berth::cli
