#include "berth/base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "berth/base/visible.h"

namespace berth {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

/// The first candidate of those with the least edit distance, where that is `most` or less.
template <class Candidates>
std::string_view nearest_within(std::size_t most, std::string_view text,
                                const Candidates& candidates) {
  constexpr std::size_t kLongestWord = 64;
  if (text.size() > kLongestWord) return {};
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > 2 * kLongestWord) continue;
    const std::size_t distance = edit_distance(lower(text), lower(candidate));
    if (distance > most) continue;
    best = candidate;
    if (distance == 0) break;
    most = distance - 1;
  }
  return best;
}

}  // namespace

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string variable_name(std::string_view name) {
  std::string result(name);
  for (char& c : result)
    if (c >= 'a' && c <= 'z')
      c = static_cast<char>(c - 'a' + 'A');
    else if (c == '-' || c == '.')
      c = '_';
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  for (;;) {
    const auto first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return result;
    text.remove_prefix(first);
    const auto end = std::min(text.find_first_of(kBlanks), text.size());
    result.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string clip(std::string_view text, std::size_t most) {
  const auto byte = [](char c) { return static_cast<unsigned char>(c); };
  std::size_t end = std::min(most, text.size());
  for (int i = 0; i < 3 && end > 0 && end < text.size() && (byte(text[end]) & 0xc0) == 0x80; ++i)
    --end;  // no character is cut in two
  const std::string valid = valid_utf8(text.substr(0, end));
  std::string result;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    // 0x80 to 0x9f are control characters too, in two bytes.
    const bool second = byte(valid[i]) == 0xc2 && byte(valid[i + 1]) < 0xa0;
    if (second || byte(valid[i]) < 0x20 || valid[i] == 0x7f)
      result += fmt::format("\\x{:02x}", byte(valid[second ? ++i : i]));
    else
      result += valid[i];
  }
  return end < text.size() ? result + "…" : result;
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates) {
  return nearest_within(std::max<std::size_t>(text.size() / 2, 1), text, candidates);
}

std::string_view nearest_of(std::string_view text, std::span<const std::string> candidates) {
  return nearest_within(std::max<std::size_t>(text.size() / 3, 1), text, candidates);
}

std::string_view near_miss(std::string_view text, std::span<const std::string> candidates) {
  constexpr std::size_t kFewest = 4, kLong = 8, kMost = 64;
  if (text.size() > kMost) return {};
  for (const std::string_view candidate : candidates) {
    const std::size_t letters = std::min(text.size(), candidate.size());
    const std::size_t allowed = letters < kFewest ? 0 : letters < kLong ? 1 : 2;
    if (candidate.size() > kMost || letters < 2 || text == candidate) continue;
    if (edit_distance(lower(text), lower(candidate)) <= allowed) return candidate;
  }
  return {};
}

std::string shell_quote(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

std::string json_quote(std::string_view text) {
  std::string result = "\"";
  const std::string valid = valid_utf8(text);
  for (std::size_t at = 0, bytes = 0; at < valid.size(); at += bytes) {
    bytes = utf8_length(valid, at);
    const char32_t code = utf8_code(valid, at);
    // What is printed as JSON must not control a terminal either.
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || turns_writing(code))
      result += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    else if (code == '"' || code == '\\')
      result += {'\\', valid[at]};
    else
      result.append(valid, at, bytes);
  }
  return result + "\"";
}

char32_t utf8_code(std::string_view text, std::size_t at) {
  const std::size_t bytes = utf8_length(text, at);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (bytes < 2) return bytes == 0 ? 0 : byte(0);
  char32_t code = byte(0) & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) code = code << 6 | (byte(i) & 0x3fU);
  return code;
}

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(at + 1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool outside = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      result += '?';
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

}  // namespace berth
