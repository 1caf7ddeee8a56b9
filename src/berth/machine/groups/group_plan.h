// The plan for enforcing limits by control groups, as far as reading tells: nothing is made, moved
// or written here.
//
// Sources: cgroups(7), Documentation/admin-guide/cgroup-v2.rst of the kernel, and systemd's
// CGROUP_DELEGATION. The functions keep nothing; any thread. If something cannot be read, the plan
// is `none`, with the reason.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/os/env.h"

namespace berth::machine {

/// The controllers that enforce limits.
inline constexpr std::array<std::string_view, 4> kGroupControllers{"cpuset", "memory", "pids",
                                                                   "cpu"};

struct GroupPlan {
  enum class Method : std::uint8_t {
    none,    // limits are advisory here
    v1,      // groups below our own group in each v1 hierarchy
    beside,  // v2: we are in the leaf of a Berth; groups beside that leaf
    split,   // v2: our own group is delegated to us; a leaf for its processes, groups beside it
    scope,   // v2: systemd is asked for a scope, which is then split
  };
  struct Parent {
    std::string controller;  // v1: "cpuset", "memory", "pids" or "cpu"; v2: "unified"
    std::string directory;   // below which groups are made; for `scope` not known yet
  };
  Method method = Method::none;
  std::vector<Parent> parents;
  std::string part_of;   // scope: the service that we are in, with which the scope is to end
  bool session = false;  // scope: we are in a log-in session, which ends without us once we moved
  std::string because;   // why limits are advice, or where they will be held; a phrase
};

/// `root`: prefix of /proc and /sys, "" live. `keep_in`: somebody else's limits apply to us (a
/// batch system's), so that systemd is not to be asked for another place.
GroupPlan plan_groups(os::Env& env, const std::string& root, bool keep_in);

/// The name of a group that Berth made: "berth.PID.START.N" of a task, "berth.PID.START.runner" of
/// the processes that were in a group before it was split. In a container its PID namespace
/// follows: "berth.PID.START.N.NAMESPACE".
struct GroupName {
  os::ProcessIdentity maker;
  bool leaf = false;
  std::uint64_t container = 0;  ///< container_namespace() of the maker.
};
/// Returns true if the maker lives, or is in another PID namespace, where that cannot be known.
bool may_live(os::Env& env, const GroupName& name);
/// What follows the name of a group that this process makes: "" or ".NAMESPACE".
std::string group_name_end(os::Env& env);
std::optional<GroupName> parse_group_name(std::string_view name);

}  // namespace berth::machine
