#include "berth/machine/groups.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/cgroup_paths.h"

namespace berth::machine {
namespace {

constexpr std::size_t kSmallFile = 1 << 20;
constexpr std::int64_t kPeriodUs = 100'000;     // the kernel's own default
constexpr std::int64_t kMostProcesses = 16384;  // a fork bomb ends here
constexpr std::array<std::string_view, 4> kControllers{"cpuset", "memory", "pids", "cpu"};

std::string core_list(const Block& block) {
  std::string list;
  for (const auto& share : block.cores)
    list += fmt::format("{}{}", list.empty() ? "" : ",", share.core);
  return list;
}

/// Whole cores are held by the cpuset alone; a share of one takes a quota.
bool takes_quota(const Block& block) {
  const std::int64_t cpu = block.resources.get(Known::cpu);
  return cpu > 0 && cpu < static_cast<std::int64_t>(block.cores.size()) * 1000;
}

std::int64_t number_after(std::string_view text, std::string_view key) {
  for (const auto line : split(text, '\n')) {
    const auto fields = words(line);
    if (fields.size() == 2 && fields[0] == key) return parse_integer(fields[1]).value_or(0);
  }
  return 0;
}

}  // namespace

Groups::Groups(os::Env& env, const std::string& root) : env_(&env) {
  const auto self = env.self();
  prefix_ = fmt::format("berth.{}.{}", self.pid, self.started_at);
  const auto paths = find_cgroup_paths(env, root);
  if (!paths) return;
  for (const auto controller : kControllers) {
    const CgroupHierarchy* hierarchy = paths->find(controller);
    if (hierarchy == nullptr || !hierarchy->ours || hierarchy->version != 1) continue;
    parents_.push_back({std::string(controller), hierarchy->groups.front().directory});
  }
  for (const auto& hierarchy : paths->hierarchies) {
    if (hierarchy.version != 2 || !hierarchy.ours || !parents_.empty()) continue;
    std::vector<std::string> candidates;
    for (const auto& group : hierarchy.groups) candidates.push_back(group.directory);
    candidates.resize(std::min<std::size_t>(candidates.size(), 2));
    open_unified(candidates);
  }
  for (const auto& parent : parents_) sweep(parent);
  // One trial tells which of them we may write.
  Group trial;
  trial.name = prefix_ + ".trial";
  std::erase_if(parents_, [&](const Parent& parent) {
    const bool writable = env.make_directory(file(parent, trial, ""), 0755).has_value();
    if (writable) (void)env.remove_directory(file(parent, trial, ""));
    return !writable;
  });
}

/// A v2 group with processes in it gives no controllers to groups below it, so where ours cannot,
/// the one above it is tried: our tasks then stand beside us.
void Groups::open_unified(const std::vector<std::string>& candidates) {
  for (const auto& directory : candidates) {
    const std::string control = directory + "/cgroup.subtree_control";
    for (const auto controller : kControllers)
      (void)env_->write_into(control, fmt::format("+{}", controller));
    const auto given = env_->read_file(control, kSmallFile);
    if (!given || trim(*given).empty()) continue;
    for (const auto controller : words(*given)) controllers_.emplace_back(controller);
    parents_.push_back({"unified", directory});
    return;
  }
}

Groups::~Groups() {
  for (const auto& group : idle_) remove(*group);
  for (const auto& group : doomed_) remove(*group);
}

bool Groups::has(std::string_view controller) const {
  for (const auto& parent : parents_) {
    if (parent.controller == controller) return true;
    if (parent.controller == "unified")
      return std::ranges::find(controllers_, controller) != controllers_.end();
  }
  return false;
}

std::string Groups::enforced() const {
  std::string list;
  for (const auto controller : kControllers)
    if (has(controller)) list += fmt::format("{}{}", list.empty() ? "" : ", ", controller);
  if (list.empty()) return list;
  return fmt::format("{} by cgroup {}", list, has_unified() ? "v2" : "v1");
}

std::string Groups::advisory(const Resources& resources) const {
  std::vector<std::string> loose;
  if (resources.get(Known::mem) > 0 && !has("memory")) loose.emplace_back("mem");
  if (resources.get(Known::cpu) % 1000 != 0 && !has("cpu")) loose.emplace_back("cpu");
  if (resources.get(Known::disk) > 0) loose.emplace_back("disk");
  return join(loose, ", ");
}

std::string Groups::file(const Parent& parent, const Group& group, std::string_view name) const {
  return fmt::format("{}/{}{}{}", parent.directory, group.name, name.empty() ? "" : "/", name);
}

std::unique_ptr<Group> Groups::make() {
  auto group = std::make_unique<Group>();
  group->name = fmt::format("{}.{}", prefix_, ++made_);
  for (const auto& parent : parents_) {
    if (env_->make_directory(file(parent, *group, ""), 0755)) continue;
    remove(*group);
    return nullptr;
  }
  open_files(*group);
  return group;
}

std::unique_ptr<Group> Groups::acquire(const Block& limits) {
  if (parents_.empty()) return nullptr;
  std::erase_if(doomed_, [&](const auto& group) { return remove(*group); });
  // The one that had these very limits needs no writing.
  auto found = std::ranges::find(idle_, limits, [](const auto& group) { return group->limits; });
  if (found == idle_.end() && !idle_.empty()) found = idle_.end() - 1;
  std::unique_ptr<Group> group;
  if (found != idle_.end()) {
    group = std::move(*found);
    idle_.erase(found);
  } else {
    group = make();
  }
  if (!group) return nullptr;
  const bool fresh = group->join_files.empty();
  if ((fresh || group->limits != limits) && !limit(*group, limits)) {
    remove(*group);
    return nullptr;
  }
  if (group->peak && !has_unified()) (void)env_->write_all(group->peak, "0");  // v1: begin anew
  return group;
}

std::string Groups::read(const os::Fd& file) {
  constexpr std::size_t kEnough = 64 * 1024;
  if (!file) return {};
  return env_->read_at(file, 0, kEnough).value_or("");
}

void Groups::open_files(Group& group) {
  const auto open = [&](os::Fd& fd, const Parent& parent, std::string_view name, bool write) {
    auto opened = write ? env_->open_write(file(parent, group, name))
                        : env_->open_read(file(parent, group, name));
    if (opened) fd = *std::move(opened);
  };
  for (const auto& parent : parents_) {
    if (parent.controller == "memory") {
      open(group.peak, parent, "memory.max_usage_in_bytes", true);
      open(group.events, parent, "memory.oom_control", false);
    } else if (parent.controller == "unified") {
      open(group.peak, parent, "memory.peak", false);
      open(group.events, parent, "memory.events", false);
    }
  }
  // Every task joins the pids group, where there is one.
  const auto pids = std::ranges::find(parents_, "pids", &Parent::controller);
  const Parent& counted = pids != parents_.end() ? *pids : parents_.front();
  open(group.processes, counted, "cgroup.procs", false);
}

bool Groups::limit(Group& group, const Block& limits) {
  const std::int64_t mem = limits.resources.get(Known::mem);
  const std::int64_t quota_us = limits.resources.get(Known::cpu) * kPeriodUs / 1000;
  const bool quota = takes_quota(limits);
  const std::string cores = core_list(limits);
  bool written = true;
  group.join_files.clear();
  const auto put = [&](const Parent& parent, std::string_view name, const std::string& text) {
    written = env_->write_into(file(parent, group, name), text).has_value() && written;
  };
  for (const auto& parent : parents_) {
    const bool unified = parent.controller == "unified";
    if (parent.controller == "cpuset") {
      if (cores.empty()) continue;  // an empty cpuset takes no process
      const auto nodes = env_->read_file(parent.directory + "/cpuset.mems", kSmallFile);
      put(parent, "cpuset.mems", std::string(trim(nodes.value_or("0"))));
      put(parent, "cpuset.cpus", cores);
    } else if (parent.controller == "memory") {
      put(parent, "memory.limit_in_bytes", mem > 0 ? fmt::format("{}", mem) : "-1");
    } else if (parent.controller == "pids") {
      put(parent, "pids.max", fmt::format("{}", kMostProcesses));
    } else if (parent.controller == "cpu") {
      if (!quota) continue;  // joining costs a little of every start, and would hold nothing
      put(parent, "cpu.cfs_quota_us", fmt::format("{}", quota_us));
    } else if (unified) {
      if (has("memory")) put(parent, "memory.max", mem > 0 ? fmt::format("{}", mem) : "max");
      if (has("pids")) put(parent, "pids.max", fmt::format("{}", kMostProcesses));
      if (has("cpu"))
        put(parent, "cpu.max",
            quota ? fmt::format("{} {}", quota_us, kPeriodUs) : fmt::format("max {}", kPeriodUs));
      if (has("cpuset")) put(parent, "cpuset.cpus", cores);
    }
    // v1 moves one thread through "tasks", twelve times as fast as through "cgroup.procs".
    auto join = env_->open_write(file(parent, group, unified ? "cgroup.procs" : "tasks"));
    written = join.has_value() && written;
    if (join) group.join_files.push_back(*std::move(join));
  }
  group.limits = limits;
  return written;
}

GroupUsage Groups::usage(Group& group) {
  GroupUsage usage;
  usage.peak_mem = parse_integer(trim(read(group.peak))).value_or(0);
  group.oom_kills_seen = number_after(read(group.events), "oom_kill");
  usage.oom_kills = group.oom_kills_seen - group.oom_kills_before;
  return usage;
}

void Groups::kill_all(const Group& group) {
  constexpr int kRounds = 16;  // whoever forks meanwhile is met in the next round
  if (has_unified()) {         // kills what is below it too
    (void)env_->write_into(file(parents_.front(), group, "cgroup.kill"), "1");
    return;
  }
  const auto counted = std::ranges::find(parents_, "pids", &Parent::controller);
  const Parent& parent = counted != parents_.end() ? *counted : parents_.front();
  for (const auto& below : groups_below(file(parent, group, "")))
    kill_listed(env_->read_file(below + "/cgroup.procs", kSmallFile).value_or(""));
  for (int round = 0; round < kRounds; ++round) {
    const std::string processes = read(group.processes);
    if (processes.empty()) return;
    kill_listed(processes);
  }
}

void Groups::kill_listed(std::string_view processes) {
  for (const auto word : words(processes)) {
    const auto pid = static_cast<pid_t>(parse_integer(word).value_or(0));
    if (pid > 1 && pid != env_->self().pid) (void)env_->signal_pid(pid, SIGKILL);
  }
}

/// Groups that a Berth within a task made below the task's own, the deepest first.
std::vector<std::string> Groups::groups_below(const std::string& directory) {
  std::vector<std::string> below;
  const auto status = env_->status(directory);
  if (!status || status->links <= 2) return below;
  for (const auto& name : env_->list(directory).value_or(std::vector<std::string>())) {
    const std::string path = directory + "/" + name;
    const auto child = env_->status(path);
    if (!child || child->kind != os::FileStatus::Kind::directory) continue;
    const auto deeper = groups_below(path);
    below.insert(below.end(), deeper.begin(), deeper.end());
    below.push_back(path);
  }
  return below;
}

void Groups::release(std::unique_ptr<Group> group) {
  kill_all(*group);
  // v2 counts the peak from the group's making, so such a group serves one task.
  if (has_unified() && has("memory")) {
    if (!remove(*group)) doomed_.push_back(std::move(group));
    return;
  }
  group->oom_kills_before = group->oom_kills_seen;
  idle_.push_back(std::move(group));
}

bool Groups::remove(const Group& group) {
  bool gone = true;
  for (const auto& parent : parents_) {
    for (const auto& below : groups_below(file(parent, group, "")))
      (void)env_->remove_directory(below);
    const auto removed = env_->remove_directory(file(parent, group, ""));
    gone = gone && (removed || removed.error().kind == ErrorKind::not_found);
  }
  return gone;
}

void Groups::sweep(const Parent& parent) {
  const auto names = env_->list(parent.directory);
  if (!names) return;
  for (const auto& name : *names) {
    const auto parts = split(name, '.');
    if (parts.size() != 4 || parts[0] != "berth") continue;
    const os::ProcessIdentity maker{static_cast<pid_t>(parse_integer(parts[1]).value_or(0)),
                                    parse_integer(parts[2]).value_or(0)};
    if (env_->alive(maker)) continue;
    Group dead;
    dead.name = name;
    open_files(dead);
    kill_all(dead);
    (void)remove(dead);
  }
}

}  // namespace berth::machine
