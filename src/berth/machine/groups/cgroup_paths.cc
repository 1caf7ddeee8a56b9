#include "berth/machine/groups/cgroup_paths.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "berth/base/text.h"

namespace berth::machine {
namespace {

constexpr std::size_t kLargestMountTable = 1 << 20;
constexpr std::size_t kMostHierarchies = 64;
constexpr std::size_t kMostMounts = 1024;  // of control groups
constexpr std::size_t kDeepest = 64;
constexpr std::array<std::string_view, 3> kLimiting{"cpu", "cpuset", "memory"};

/// A line of /proc/self/cgroup: "4:cpu,cpuacct:/docker/abc", "0::/init.scope".
struct Membership {
  std::vector<std::string_view> controllers;  // none: v2
  std::string_view group;
};

/// What we need of a line of mountinfo.
struct Mount {
  std::string_view id, parent;
  std::string root, point;
  std::string_view type;
  std::vector<std::string_view> options;  // of the superblock: a v1 one names its controllers
};

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::optional<Membership> parse_membership(std::string_view line) {
  const auto first = line.find(':');
  const auto second = first == line.npos ? line.npos : line.find(':', first + 1);
  if (second == line.npos || !line.substr(second + 1).starts_with('/')) return std::nullopt;
  Membership membership{{}, line.substr(second + 1)};
  if (const auto named = line.substr(first + 1, second - first - 1); !named.empty())
    membership.controllers = split(named, ',');
  return membership;
}

/// "\040" and its like stand for the blanks and backslashes of a path.
std::string unescape(std::string_view text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto code = text.substr(at).starts_with('\\') ? text.substr(at + 1, 3) : "";
    if (code.size() == 3 && code[0] <= '3' && std::ranges::all_of(code, octal)) {
      result += static_cast<char>((code[0] - '0') * 64 + (code[1] - '0') * 8 + (code[2] - '0'));
      at += 3;
    } else {
      result += text[at];
    }
  }
  return result;
}

/// "36 35 0:31 /root /point rw,nosuid shared:9 master:1 - cgroup source rw,cpu,cpuacct". There are
/// any number of optional fields before the dash, and an empty source leaves no word.
std::optional<Mount> parse_mount(std::string_view line) {
  const auto fields = words(line);
  if (fields.size() < 9 || !fields[3].starts_with('/') || !fields[4].starts_with('/'))
    return std::nullopt;
  const auto dash = std::find(fields.begin() + 6, fields.end(), "-");
  if (fields.end() - dash < 3) return std::nullopt;
  return Mount{fields[0],           fields[1],   unescape(fields[3]),
               unescape(fields[4]), *(dash + 1), split(fields.back(), ',')};
}

/// The lines that `parse` understands; the first of the others is noted.
template <class Parse>
auto parse_lines(std::string_view text, std::string_view file, Parse parse,
                 std::vector<std::string>& notes) {
  std::vector<typename decltype(parse(text))::value_type> parsed;
  std::size_t misread = 0, number = 0;
  std::string first;
  for (const auto line : split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    if (auto value = parse(line))
      parsed.push_back(*std::move(value));
    else if (++misread == 1)
      first = fmt::format("{}:{}: '{}'", file, number, clip(line));
  }
  if (misread == 1) notes.push_back(fmt::format("not understood: {}", first));
  if (misread > 1) notes.push_back(fmt::format("{} lines not understood: {}", misread, first));
  return parsed;
}

/// The mounts of control groups that nothing lies on top of.
std::vector<Mount> visible_cgroup_mounts(const std::vector<Mount>& all) {
  std::vector<Mount> visible;
  for (const auto& mount : all) {
    if (mount.type != "cgroup" && mount.type != "cgroup2") continue;
    const auto covers = [&](const Mount& other) {
      return other.parent == mount.id && other.point == mount.point;
    };
    if (visible.size() < kMostMounts && std::ranges::none_of(all, covers)) visible.push_back(mount);
  }
  return visible;
}

/// The part of `group` below `root`, "" for itself. Both are named from the root of our cgroup
/// namespace, so that either may begin with "/.."; a ".." left over leads out of the mount.
std::optional<std::string_view> below(std::string_view group, std::string_view root) {
  if (root == "/") root = "";
  if (!group.starts_with(root)) return std::nullopt;
  group.remove_prefix(root.size());
  if (group == "/") group = "";
  if (!group.empty() && group.front() != '/') return std::nullopt;
  if (contains(split(group, '/'), "..")) return std::nullopt;
  return group;
}

CgroupHierarchy describe(const Membership& member, const Mount& mount,
                         std::vector<std::string>& notes) {
  CgroupHierarchy hierarchy;
  hierarchy.version = member.controllers.empty() ? 2 : 1;
  hierarchy.controllers.assign(member.controllers.begin(), member.controllers.end());
  const auto inside = below(member.group, mount.root);
  hierarchy.ours = inside.has_value();
  if (!inside)
    notes.push_back(
        fmt::format("our group {} cannot be seen at {}: the limits at that place are used",
                    clip(member.group), clip(mount.point)));
  std::string_view root = mount.root;
  if (root == "/") root = "";
  for (std::string_view left = inside.value_or("");; left = left.substr(0, left.rfind('/'))) {
    std::string group = fmt::format("{}{}", root, left);
    if (group.empty()) group = "/";
    hierarchy.groups.push_back({std::move(group), fmt::format("{}{}", mount.point, left)});
    if (left.empty()) break;
    if (hierarchy.groups.size() == kDeepest) {
      notes.push_back(
          fmt::format("our group is nested more than {} deep below {}: higher groups are not read",
                      kDeepest, clip(mount.point)));
      break;
    }
  }
  return hierarchy;
}

/// Whether cpu, cpuset or memory is in the hands of this hierarchy: v2 has what no v1 one names.
bool limits_us(const Membership& member, std::span<const Membership> all) {
  const auto names = [](std::string_view controller) {
    return [controller](const Membership& any) { return contains(any.controllers, controller); };
  };
  return std::ranges::any_of(kLimiting, [&](std::string_view controller) {
    return member.controllers.empty() ? std::ranges::none_of(all, names(controller))
                                      : names(controller)(member);
  });
}

const Mount* find_mount(const Membership& member, std::span<const Mount> mounts) {
  const Mount* best = nullptr;
  const auto rank = [&](const Mount& mount) {
    return std::pair(!below(member.group, mount.root), mount.root.size());
  };
  for (const auto& mount : mounts) {
    const bool same =
        member.controllers.empty()
            ? mount.type == "cgroup2"
            : mount.type == "cgroup" && contains(mount.options, member.controllers.front());
    if (same && (!best || rank(mount) < rank(*best))) best = &mount;
  }
  return best;
}

}  // namespace

const CgroupHierarchy* CgroupPaths::find(std::string_view controller) const {
  const CgroupHierarchy* unified = nullptr;
  for (const auto& hierarchy : hierarchies) {
    if (hierarchy.version == 2) unified = &hierarchy;
    if (std::ranges::find(hierarchy.controllers, controller) != hierarchy.controllers.end())
      return &hierarchy;
  }
  return unified;
}

CgroupPaths parse_cgroup_paths(std::string_view cgroup, std::string_view mountinfo) {
  CgroupPaths paths;
  auto members = parse_lines(cgroup, "/proc/self/cgroup", parse_membership, paths.notes);
  if (members.size() > kMostHierarchies) {
    paths.notes.push_back(
        fmt::format("more than {} hierarchies of control groups: the others are "
                    "not read",
                    kMostHierarchies));
    members.resize(kMostHierarchies);
  }
  const auto mounts = visible_cgroup_mounts(
      parse_lines(mountinfo, "/proc/self/mountinfo", parse_mount, paths.notes));
  for (const auto& member : members) {
    if (const Mount* mount = find_mount(member, mounts))
      paths.hierarchies.push_back(describe(member, *mount, paths.notes));
    else if (limits_us(member, members))
      paths.notes.push_back(
          fmt::format("our group {} is not mounted where we can see it: its "
                      "limits are unknown",
                      clip(member.group)));
  }
  return paths;
}

Result<CgroupPaths> find_cgroup_paths(os::Env& env, const std::string& root) {
  BERTH_ASSIGN(const auto mountinfo,
               env.read_file(root + "/proc/self/mountinfo", kLargestMountTable));
  const auto cgroup = env.read_file(root + "/proc/self/cgroup", kLargestMountTable);
  if (!cgroup && cgroup.error().kind != ErrorKind::not_found)
    return std::unexpected(cgroup.error());
  CgroupPaths paths = parse_cgroup_paths(cgroup.value_or(""), mountinfo);
  if (!cgroup) paths.notes.push_back("this kernel has no control groups");
  for (auto& hierarchy : paths.hierarchies)
    for (auto& place : hierarchy.groups) place.directory.insert(0, root);
  return paths;
}

}  // namespace berth::machine
