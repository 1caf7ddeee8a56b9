#include "berth/fileset/paths.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/fileset/fileset.h"

namespace berth::fileset {

bool safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMostPath || path.find('\0') != std::string_view::npos)
    return false;
  return std::ranges::none_of(split(path, '/'), [](std::string_view name) {
    return name.empty() || name == "." || name == "..";
  });
}

bool valid_target(std::string_view target) {
  return !target.empty() && target.size() <= kMostPath &&
         target.find('\0') == std::string_view::npos;
}

bool safe_target(std::string_view path, std::string_view target) {
  if (!valid_target(target) || target.starts_with('/')) return false;
  auto above = std::ranges::count(path, '/');
  bool down = false;
  for (const auto name : split(target, '/')) {
    if (name.empty() || name == ".") continue;
    if (name != "..")
      down = true;
    else if (down || --above < 0)
      return false;
  }
  return true;
}

}  // namespace berth::fileset
