// Control groups that enforce the limits of tasks where the host allows it: cgroup v1 and v2.
//
// Under v2 a group has to be divided first (group_division.h), for which this process may have to
// move into a scope of systemd. That costs some milliseconds and happens once, when the first task
// with a limit asks for its group; a failure on the way is undone, and limits are advisory then.
//
// Ownership: Groups owns the directories that it made and removes them at its end; those of a Berth
// that died are removed by the next one. Threads: one. A failure never stops a task from running;
// advisory() says what is not enforced, and why.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/machine/groups/group_division.h"
#include "berth/machine/groups/group_plan.h"
#include "berth/machine/machine.h"
#include "berth/os/env.h"

namespace berth::machine {

struct GroupUsage {
  std::int64_t peak_mem = 0;   // bytes; 0 where the group does not count it
  std::int64_t oom_kills = 0;  // processes that the kernel killed for the group's limit
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
  /// Whether this process and its neighbours may be moved into other groups, as v2 requires unless
  /// a Berth has done so already.
  bool may_move = false;
  bool keep_in = false;  // as plan_groups() has it
  /// A command that stays in the log-in session when this process leaves it: the user's systemd
  /// ends with the last session, with everything that it holds. Empty: none is needed.
  std::vector<std::string> anchor{};
};

class Groups {
 public:
  /// Removes the groups of dead Berths that it can see. It prepares nothing yet.
  explicit Groups(os::Env& env, GroupOptions options = {});
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  ~Groups();

  /// The controllers that enforce limits, "cpuset, memory, pids, cpu by cgroup v1"; "" before it is
  /// prepared and where there are none.
  std::string enforced() const;
  /// The amounts that are not enforced here, for people and with the reason; "" if all are. Call it
  /// after acquire().
  std::string advisory(const Resources& resources) const;
  /// The amounts that a group could enforce and none does here: "mem, cpu".
  std::string not_held(const Resources& resources) const;
  const GroupPlan& plan() const { return plan_; }
  /// Whether these amounts can be enforced as far as possible without moving this process.
  bool holds_as_is(const Resources& resources) const;

  /// A group with these limits, a used one if there is one; nullptr if the host allows none.
  std::unique_ptr<Group> acquire(const Block& limits);
  GroupUsage usage(Group& group);
  /// Kills what is still in the group, and keeps it for the next task if its counters remain valid.
  void release(std::unique_ptr<Group> group);
  /// Makes no groups any more, as a process could not be placed in one.
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
