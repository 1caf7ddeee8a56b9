// Control groups that hold tasks to what they reserved, where the host allows it: cgroup v1 and v2.
//
// Ownership: Groups owns the directories it made and removes them when it goes; those of a Berth
// that died are removed by the next one. Threads: one. Failure: never stops a task from running;
// what cannot be enforced is said in advisory().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  std::vector<os::Fd> join_files;                         // for os::SpawnSpec
  os::Fd peak, events, processes;                         // empty where there is none
  Block limits;                                           // as written last
  std::int64_t oom_kills_before = 0, oom_kills_seen = 0;  // since it was made
};

class Groups {
 public:
  /// Looks where groups can be made below our own, and removes those of dead Berths. `root` is a
  /// prefix of /proc and /sys: "" live, a fixture's folder in tests.
  explicit Groups(os::Env& env, const std::string& root = "");
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  ~Groups();

  /// "cpuset, memory, pids, cpu by cgroup v1", or "".
  std::string enforced() const;
  /// Which of these amounts are not enforced here, in words; "" when all are.
  std::string advisory(const Resources& resources) const;

  /// A group with these limits, one that was used before if there is one; nullptr where the host
  /// allows none.
  std::unique_ptr<Group> acquire(const Block& limits);
  GroupUsage usage(Group& group);
  /// Kills whatever is still in it, and keeps it for the next task where its figures stay true.
  void release(std::unique_ptr<Group> group);

 private:
  /// A directory below which groups are made.
  struct Parent {
    std::string controller;  // "cpuset", "memory", "pids", "cpu"; "unified" for v2
    std::string directory;
  };
  void open_unified(const std::vector<std::string>& candidates);
  bool has(std::string_view controller) const;
  bool has_unified() const { return !parents_.empty() && parents_.front().controller == "unified"; }
  std::string file(const Parent& parent, const Group& group, std::string_view name) const;
  std::unique_ptr<Group> make();
  bool limit(Group& group, const Block& limits);
  void open_files(Group& group);
  std::string read(const os::Fd& file);
  bool remove(const Group& group);
  void kill_all(const Group& group);
  void kill_listed(std::string_view processes);
  std::vector<std::string> groups_below(const std::string& directory);
  void sweep(const Parent& parent);

  os::Env* env_;
  std::vector<Parent> parents_;
  std::vector<std::string> controllers_;  // that v2 gives to our groups
  std::string prefix_;
  std::int64_t made_ = 0;
  std::vector<std::unique_ptr<Group>> idle_;
  std::vector<std::unique_ptr<Group>> doomed_;  // whose last processes are still on their way out
};

}  // namespace berth::machine
