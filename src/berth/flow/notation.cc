#include "berth/flow/notation.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/url.h"

namespace berth::flow {
namespace {

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}

bool valid_name(std::string_view name, bool dashes) {
  return !name.empty() && name.size() <= 64 && letter(name[0]) &&
         std::ranges::all_of(name,
                             [&](char c) { return letter(c) || digit(c) || (dashes && c == '-'); });
}

}  // namespace

bool valid_step_name(std::string_view name) {
  return valid_name(name, true);
}

bool valid_value_name(std::string_view name) {
  return valid_name(name, false) && name != "index" && name != "params_file";
}

Result<std::string> plain_path(std::string_view path) {
  const auto wrong = [](std::string_view what) { return fail(ErrorKind::invalid, "{}", what); };
  if (path.empty()) return wrong("the path is empty");
  if (path.size() > fileset::kMostPath) return wrong("the path is too long");
  if (path.find('\0') != std::string_view::npos) return wrong("cannot contain a NUL byte");
  std::string plain = path.starts_with('/') ? "/" : "";
  const std::size_t root = plain.size();
  bool down = false;
  for (const auto name : split(path, '/')) {
    if (name.empty() || name == ".") continue;
    if (name == ".." && (down || root > 0))
      return wrong("'..' may only be at the beginning of a path");
    down = down || name != "..";
    if (plain.size() > root) plain += '/';
    plain += name;
  }
  if (!down) return wrong("the path names no file");
  return plain;
}

bool stays_inside(std::string_view plain) {
  return !plain.starts_with('/') && plain != ".." && !plain.starts_with("../");
}

std::string place_of(std::string_view plain) {
  if (plain.starts_with('/')) return "_root" + std::string(plain);
  std::string place;
  for (; plain.starts_with("../"); plain.remove_prefix(3)) place += "_up/";
  return place + std::string(plain);
}

std::vector<std::string> names_in(std::string_view text) {
  return exec::placeholders({{}, {std::string(text)}});
}

std::string expand(std::string_view text,
                   const std::function<std::optional<std::string>(std::string_view)>& value) {
  if (text.find('{') == std::string_view::npos) return std::string(text);
  return exec::command_line({{}, {std::string(text)}}, value).at(0);
}

bool KnownNames::has(std::string_view name) const {
  return std::ranges::find(values, name) != values.end() || is_of_element(name);
}

bool KnownNames::is_of_element(std::string_view name) const {
  const auto dot = name.find('.');
  return dot != std::string_view::npos &&
         std::ranges::find(variables, name.substr(0, dot)) != variables.end();
}

Status check_names(std::string_view text, const KnownNames& known, const Field& at) {
  for (const auto& name : names_in(text)) {
    if (known.has(name)) continue;
    const std::vector<std::string_view> views(known.values.begin(), known.values.end());
    const auto meant = nearest(name, views);
    if (!meant.empty())
      return at.error(fmt::format("unknown name {{{}}}; did you mean {{{}}}?", name, meant));
    if (known.values.empty()) return at.error(fmt::format("unknown name {{{}}}", name));
    return at.error(
        fmt::format("unknown name {{{}}}; known names: {}", name, join(known.values, ", ")));
  }
  return {};
}

std::string key_text(std::string_view value) {
  constexpr std::size_t kLongest = 100, kKept = 80, kDigits = 12;
  if (value.empty()) return "%";
  const bool utf8 = valid_utf8(value) == value;
  const bool dots = value == "." || value == "..";
  // Secrets of URLs are not part of a key; the digest distinguishes URLs that differ only in them.
  const std::string shown = without_secrets(value, "");
  std::string text;
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = letter(c) || digit(c) || std::string_view("_.=+@:~-").contains(c);
    if ((plain && !(dots && c == '.')) || (utf8 && byte >= 0x80))
      text += c;
    else
      text += fmt::format("%{:02X}", byte);
  }
  if (text.size() <= kLongest && shown == value) return text;
  std::size_t end = std::min(kKept, text.size());  // no character is cut in two
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80)
    --end;
  return text.substr(0, end) + "~" + to_hex(sha256(value)).substr(0, kDigits);
}

}  // namespace berth::flow
