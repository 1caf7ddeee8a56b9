#include "berth/flow/notation.h"

#include <algorithm>

#include "berth/base/text.h"

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
  if (path.find('\0') != std::string_view::npos) return wrong("cannot hold a NUL byte");
  std::string plain = path.starts_with('/') ? "/" : "";
  const std::size_t root = plain.size();
  bool down = false;
  for (const auto name : split(path, '/')) {
    if (name.empty() || name == ".") continue;
    if (name == ".." && (down || root > 0)) return wrong("'..' may only stand in front of a path");
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

Status check_names(std::string_view text, const std::vector<std::string>& known, const Field& at) {
  for (const auto& name : names_in(text)) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::vector<std::string_view> views(known.begin(), known.end());
    const auto meant = nearest(name, views);
    if (!meant.empty())
      return at.error(fmt::format("nothing is called {{{}}}; did you mean {{{}}}?", name, meant));
    if (known.empty()) return at.error(fmt::format("nothing is called {{{}}} here", name));
    return at.error(
        fmt::format("nothing is called {{{}}}; known are: {}", name, join(known, ", ")));
  }
  return {};
}

}  // namespace berth::flow
