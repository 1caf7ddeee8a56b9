#include "berth/machine/groups/group_plan.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/groups/cgroup_paths.h"
#include "berth/machine/pid_namespace.h"

namespace berth::machine {
namespace {

using Method = GroupPlan::Method;

constexpr std::size_t kLargestControlFile = 1 << 20;

GroupPlan none(std::string because) {
  GroupPlan plan;
  plan.because = std::move(because);
  return plan;
}

GroupPlan planned(Method method, std::vector<GroupPlan::Parent> parents, std::string where) {
  GroupPlan plan;
  plan.method = method;
  plan.parents = std::move(parents);
  plan.because = std::move(where);
  return plan;
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string text_of(os::Env& env, const std::string& path) {
  return std::string(trim(env.read_file(path, kLargestControlFile).value_or("")));
}

bool has_word(std::string_view text, std::string_view word) {
  const auto all = words(text);
  return std::ranges::find(all, word) != all.end();
}

GroupPlan plan_v1(os::Env& env, const CgroupPaths& paths) {
  GroupPlan plan = planned(Method::v1, {}, "by cgroup v1");
  for (const auto controller : kGroupControllers) {
    const CgroupHierarchy* hierarchy = paths.find(controller);
    if (hierarchy == nullptr || !hierarchy->ours || hierarchy->version != 1) continue;
    const std::string& directory = hierarchy->groups.front().directory;
    if (env.may_write(directory)) plan.parents.push_back({std::string(controller), directory});
  }
  return plan;
}

bool may_divide(os::Env& env, const std::string& directory) {
  return env.may_write(directory) && env.may_write(directory + "/cgroup.procs") &&
         env.may_write(directory + "/cgroup.subtree_control");
}

/// Root owns every group, and a user all those of the user's own systemd, so that owning says
/// little: systemd marks what it delegates, and the root of a control group namespace belongs to
/// who lives in it.
bool delegated(os::Env& env, const CgroupDirectory& own) {
  if (!may_divide(env, own.directory)) return false;
  if (own.group == "/") return true;
  return std::ranges::any_of(
      std::array{"trusted.delegate", "user.delegate"},
      [&](const char* name) { return env.attribute(own.directory, name).value_or("") == "1"; });
}

/// Somebody gave it to this user, and it was not systemd.
bool handed_over(os::Env& env, const CgroupDirectory& own) {
  const auto status = env.status(own.directory);
  return env.user() != 0 && status && status->owner == env.user() && may_divide(env, own.directory);
}

/// The limit that the unit we are in sets for us, or "".
std::string limit_of_unit(os::Env& env, const std::string& directory) {
  for (const auto* file : {"memory.max", "memory.high", "cpu.max"}) {
    const std::string text = text_of(env, directory + "/" + file);
    if (!text.empty() && !text.starts_with("max")) return fmt::format("{} {}", file, text);
  }
  return "";
}

/// A place of our own from systemd, if it is there and nothing speaks against it.
GroupPlan plan_scope(os::Env& env, const std::string& root, const CgroupHierarchy& hierarchy,
                     bool keep_in) {
  const CgroupDirectory& own = hierarchy.groups.front();
  const std::string unit(last_part(own.group));
  if (keep_in) return none("a batch system runs this job in a group that it does not delegate");
  for (const auto part : split(own.group, '/'))
    if (parse_group_name(part))
      return none("another control group would escape the limits of the Berth task");
  if (!env.status(root + "/run/systemd/system"))
    return none("this group is not delegated to us, and there is no systemd to ask for one");
  if (const auto limit = limit_of_unit(env, own.directory); !limit.empty())
    return none(fmt::format("{} has {}, which another scope would leave; give it Delegate=yes",
                            unit, limit));
  GroupPlan plan = planned(Method::scope, {{"unified", ""}}, "in a scope of systemd's");
  if (unit.ends_with(".service")) plan.part_of = unit;
  plan.session = unit.starts_with("session-") && env.user() != 0;
  if (env.user() == 0) return plan;
  const auto address = env.variable("DBUS_SESSION_BUS_ADDRESS");
  if (address && !address->empty()) return plan;
  if (env.status(fmt::format("{}/run/user/{}/bus", root, env.user()))) return plan;
  return none(
      fmt::format("no systemd of this user's answers: log in through ssh or a console, or "
                  "let it stay with 'loginctl enable-linger {}'",
                  env.user()));
}

GroupPlan plan_unified(os::Env& env, const std::string& root, const CgroupHierarchy& hierarchy,
                       bool keep_in) {
  const CgroupDirectory& own = hierarchy.groups.front();
  if (!hierarchy.ours || own.group.find("/..") != std::string::npos)
    return none("our control group is not among those mounted here");
  if (!has_word(text_of(env, hierarchy.groups.back().directory + "/cgroup.controllers"), "memory"))
    return none("the cgroup v2 tree here has no memory controller");
  GroupPlan plan = planned(Method::split, {{"unified", own.directory}}, "below our own group");
  const auto name = parse_group_name(last_part(own.group));
  if (name && !name->leaf)
    return may_divide(env, own.directory) ? plan : none("a task's group that we may not divide");
  if (name && hierarchy.groups.size() > 1) {
    const std::string& above = hierarchy.groups[1].directory;
    if (!env.may_write(above + "/cgroup.procs"))
      return none("the parent group belongs to another user");
    return planned(Method::beside, {{"unified", above}}, "next to our own group");
  }
  const bool root_group = !env.status(own.directory + "/cgroup.type");
  if (root_group) return none("this process is in the root control group, which cannot be divided");
  if (delegated(env, own)) return plan;
  GroupPlan scope = plan_scope(env, root, hierarchy, keep_in);
  return scope.method == Method::none && handed_over(env, own) ? plan : scope;
}

}  // namespace

std::optional<GroupName> parse_group_name(std::string_view name) {
  const auto parts = split(name, '.');
  if (parts.size() < 4 || parts.size() > 5 || parts[0] != "berth") return std::nullopt;
  const auto pid = parse_integer(parts[1]);
  const auto started = parse_integer(parts[2]);
  const auto container = parts.size() == 5 ? parse_integer(parts[4]) : 0;
  if (!pid || !started || !container) return std::nullopt;
  return GroupName{{static_cast<pid_t>(*pid), *started},
                   parts[3] == "runner",
                   static_cast<std::uint64_t>(*container)};
}

bool may_live(os::Env& env, const GroupName& name) {
  return name.container != container_namespace(env) || env.alive(name.maker);
}

std::string group_name_end(os::Env& env) {
  const std::uint64_t container = container_namespace(env);
  return container == 0 ? "" : fmt::format(".{}", container);
}

GroupPlan plan_groups(os::Env& env, const std::string& root, bool keep_in) {
  const auto paths = find_cgroup_paths(env, root);
  if (!paths) return none(paths.error().message);
  if (GroupPlan plan = plan_v1(env, *paths); !plan.parents.empty()) return plan;
  const auto unified = std::ranges::find(paths->hierarchies, 2, &CgroupHierarchy::version);
  if (unified != paths->hierarchies.end()) return plan_unified(env, root, *unified, keep_in);
  return none("no control group that this user may write to");
}

}  // namespace berth::machine
