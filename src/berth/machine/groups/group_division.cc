#include "berth/machine/groups/group_division.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/machine/groups/group_plan.h"

namespace berth::machine {
namespace {

constexpr std::size_t kLargestList = 1 << 20;
constexpr int kRounds = 16;  // a process that forks while it is moved is found in the next round
/// Memory first: the kernel refuses it where processes are left, and changes nothing. The others it
/// takes, and makes the group a threaded one, whose children take no process.
constexpr std::array<std::string_view, 4> kInOrder{"memory", "pids", "cpu", "cpuset"};

std::string read(os::Env& env, const std::string& path) {
  return std::string(trim(env.read_file(path, kLargestList).value_or("")));
}

std::vector<std::string> controllers_of(os::Env& env, const std::string& directory) {
  const std::string text = read(env, directory + "/cgroup.subtree_control");
  std::vector<std::string> names;
  for (const auto word : words(text)) names.emplace_back(word);
  return names;
}

/// Moves all processes of one group into another. One that ends meanwhile is no failure.
Status move_processes(os::Env& env, const std::string& from, const std::string& to) {
  for (int round = 0; round < kRounds; ++round) {
    BERTH_ASSIGN(const auto processes, env.read_file(from + "/cgroup.procs", kLargestList));
    const auto pids = words(processes);
    if (pids.empty()) return {};
    for (const auto pid : pids) {
      // 0 stands for a process of another pid namespace, and writing it would move ourselves.
      if (pid == "0")
        return fail(ErrorKind::denied, "{} contains processes that we cannot see", from);
      const auto moved = env.write_into(to + "/cgroup.procs", pid);
      if (!moved && moved.error().kind != ErrorKind::not_found)
        return std::unexpected(moved.error());
    }
  }
  return fail(ErrorKind::busy, "{}: new processes start faster than they can be moved", from);
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Gives the controllers to the children of the directory, memory at least.
Status enable(os::Env& env, GroupDivision& division) {
  const std::string control = division.directory + "/cgroup.subtree_control";
  const auto before = controllers_of(env, division.directory);
  for (const auto name : kInOrder) {
    if (has(before, name)) continue;
    const auto given = env.write_into(control, fmt::format("+{}", name));
    if (!given && name == "memory") return std::unexpected(given.error());
  }
  division.controllers = controllers_of(env, division.directory);
  if (has(division.controllers, "memory")) return {};
  return fail(ErrorKind::denied, "{}: the memory controller was not given to it", control);
}

void undo_locked(os::Env& env, const GroupDivision& division) {
  const std::string& directory = division.directory;
  const auto names = env.list(directory).value_or(std::vector<std::string>());
  std::vector<std::string> leaves{division.leaf};
  for (const auto& name : names) {
    const auto made = parse_group_name(name);
    const std::string path = directory + "/" + name;
    if (!made || path == division.leaf) continue;
    if (may_live(env, *made) || !made->leaf) {
      (void)env.remove_directory(division.leaf);  // if nothing is in it; else the last one does it
      return;
    }
    leaves.push_back(path);
  }
  const auto given = controllers_of(env, directory);
  for (auto name = given.rbegin(); name != given.rend(); ++name)
    (void)env.write_into(directory + "/cgroup.subtree_control", "-" + *name);
  for (const auto& leaf : leaves) {
    (void)move_processes(env, leaf, directory);
    (void)env.remove_directory(leaf);
  }
}

}  // namespace

Result<GroupDivision> divide_group(os::Env& env, const std::string& directory,
                                   const std::string& leaf) {
  const auto lock = env.lock(directory, true);  // where the kernel has no such locks, go without
  GroupDivision division;
  division.directory = directory;
  division.leaf = directory + "/" + leaf;
  BERTH_TRY(env.make_directory(division.leaf, 0755));
  Status done = move_processes(env, directory, division.leaf);
  if (done) done = enable(env, division);
  if (done && read(env, directory + "/cgroup.type") == "domain threaded")
    done = fail(ErrorKind::denied, "{} became a threaded group", directory);
  if (done) return division;
  undo_locked(env, division);
  return std::unexpected(done.error());
}

void undo_division(os::Env& env, const GroupDivision& division) {
  const auto lock = env.lock(division.directory, true);
  undo_locked(env, division);
}

}  // namespace berth::machine
