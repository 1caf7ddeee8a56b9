// Control groups that hold tasks to what they reserved, where the host allows it: cgroup v1 and v2.
//
// Under v2 a group has to be divided first (group_division.h), for which this process may have to
// be moved into a scope of systemd's. That costs some milliseconds and happens once, when the first
// task with a limit asks for its group; whatever fails on the way is undone and makes limits
// advice.
//
// Ownership: Groups owns the directories it made and removes them when it goes; those of a Berth
// that died are removed by the next one. Threads: one. Failure: never stops a task from running;
// what cannot be enforced is said in advisory(), with the reason.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/machine/group_division.h"
#include "berth/machine/group_plan.h"
#include "berth/machine/machine.h"
#include "berth/os/env.h"

namespace berth::machine {

struct GroupUsage {
  std::int64_t peak_mem = 0;   // bytes; 0 where the group does not count it
  std::int64_t oom_kills = 0;  // processes that the kernel killed at the group's limit
};

/// The group of one task: one directory for v2, one a controller for v1. The files that every task
/// needs stay open: opening them again would cost more than what is read.
struct Group {
  std::string name;                                       // of each directory
  std::vector<os::Fd> join_files;                         // v1: for os::SpawnSpec
  os::Fd directory;                                       // v2: for os::SpawnSpec
  os::Fd peak, events, processes;                         // empty where there is none
  Block limits;                                           // as written last
  std::int64_t oom_kills_before = 0, oom_kills_seen = 0;  // since it was made
};

struct GroupOptions {
  std::string root{};  // prefix of /proc and /sys: "" live, a fixture's folder in tests
  /// Whether this process and its neighbours may be moved into other groups, as v2 takes unless a
  /// Berth has done so already.
  bool may_move = false;
  bool keep_in = false;  // as plan_groups() has it
  /// A command that stays behind when a process leaves a log-in session: the user's systemd ends
  /// with the last session, and then whatever it holds. "": none is needed.
  std::vector<std::string> anchor{};
};

class Groups {
 public:
  /// Removes the groups of dead Berths where it can see them; prepares nothing yet.
  explicit Groups(os::Env& env, GroupOptions options = {});
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  ~Groups();

  /// "cpuset, memory, pids, cpu by cgroup v1", or "" before it is prepared and where none can be.
  std::string enforced() const;
  /// Which of these amounts are not enforced here, in words and with the reason; "" when all are.
  /// Ask it after acquire().
  std::string advisory(const Resources& resources) const;
  /// Of these amounts the ones that a group could hold and none does here: "mem, cpu".
  std::string not_held(const Resources& resources) const;
  const GroupPlan& plan() const { return plan_; }
  /// Whether a task of these amounts gets what it can get here without this process being moved.
  bool holds_as_is(const Resources& resources) const;

  /// A group with these limits, one that was used before if there is one; nullptr where the host
  /// allows none.
  std::unique_ptr<Group> acquire(const Block& limits);
  GroupUsage usage(Group& group);
  /// Kills whatever is still in it, and keeps it for the next task where its figures stay true.
  void release(std::unique_ptr<Group> group);
  /// Makes no group any more: a process could not be placed in one.
  void give_up(std::string because);

 private:
  using Parent = GroupPlan::Parent;
  void prepare();
  Status enter_scope();
  bool has(std::string_view controller) const;
  std::string file(const Parent& parent, const Group& group, std::string_view name) const;
  Result<std::unique_ptr<Group>> find_or_make(const Block& limits);
  Result<std::unique_ptr<Group>> make();
  Status limit(Group& group, const Block& limits);
  Status limit_unified(const Parent& parent, Group& group, const Block& limits);
  void open_files(Group& group);
  std::string read(const os::Fd& file);
  bool remove(const Group& group);
  void kill_all(const Group& group);
  void kill_listed(std::string_view processes);
  std::vector<std::string> groups_below(const std::string& directory);
  void sweep(const Parent& parent);

  os::Env* env_;
  GroupOptions options_;
  GroupPlan plan_;
  bool prepared_ = false;
  std::optional<GroupDivision> division_;  // v2
  std::vector<Parent> parents_;            // below which groups are made; none: limits are advice
  std::optional<os::Child> anchor_;        // lives as long as we do
  std::string prefix_;
  std::int64_t made_ = 0;
  std::vector<std::unique_ptr<Group>> idle_;
  std::vector<std::unique_ptr<Group>> doomed_;  // whose last processes are still on their way out
};

}  // namespace berth::machine
