#include "berth/machine/groups/groups.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/groups/cgroup_paths.h"
#include "berth/os/spawn.h"

namespace berth::machine {
namespace {

constexpr std::size_t kSmallFile = 1 << 20;
constexpr std::int64_t kPeriodUs = 100'000;  // the kernel's own default
constexpr std::int64_t kMostPids = 16384;    // a fork bomb ends here
constexpr Duration kPause = std::chrono::milliseconds(10);

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

Groups::Groups(os::Env& env, GroupOptions options)
    : env_(&env),
      options_(std::move(options)),
      plan_(plan_groups(env, options_.root, options_.keep_in)) {
  const auto self = env.self();
  prefix_ = fmt::format("berth.{}.{}", self.pid, self.started_at);
  if (plan_.method == GroupPlan::Method::v1) prepare();
  if (plan_.method == GroupPlan::Method::beside || plan_.method == GroupPlan::Method::split)
    sweep(plan_.parents.front());
}

void Groups::prepare() {
  prepared_ = true;
  if (plan_.method == GroupPlan::Method::v1) {
    parents_ = plan_.parents;
    for (const auto& parent : parents_) sweep(parent);
    return;
  }
  if (plan_.method == GroupPlan::Method::none) return;
  if (plan_.method == GroupPlan::Method::scope)
    if (const auto entered = enter_scope(); !entered) return give_up(entered.error().message);
  const std::string& directory = plan_.parents.front().directory;
  auto division = divide_group(*env_, directory, prefix_ + ".runner" + group_name_end(*env_));
  if (!division) return give_up(division.error().message);
  division_ = *std::move(division);
  parents_ = {{"unified", division_->directory}};
}

/// From there on our own group is one that we may divide.
Status Groups::enter_scope() {
  if (plan_.session && !options_.anchor.empty()) {
    os::SpawnSpec spec;
    spec.argv = options_.anchor;
    spec.directory = "/";
    BERTH_ASSIGN(anchor_, env_->spawn(spec));
  }
  const auto self = env_->self();
  BERTH_TRY(env_->enter_scope(fmt::format("berth-{}-{}.scope", self.pid, self.started_at),
                              plan_.part_of));
  BERTH_ASSIGN(const auto paths, find_cgroup_paths(*env_, options_.root));
  const auto own = std::ranges::find(paths.hierarchies, 2, &CgroupHierarchy::version);
  if (own == paths.hierarchies.end())
    return fail(ErrorKind::not_found, "the scope's group cannot be seen");
  plan_.parents = {{"unified", own->groups.front().directory}};
  return {};
}

void Groups::give_up(std::string because) {
  prepared_ = true;
  plan_.because = std::move(because);
  plan_.method = GroupPlan::Method::none;
}

Groups::~Groups() {
  constexpr int kLooks = 100;  // at what was killed and is not gone yet
  for (auto& group : idle_) doomed_.push_back(std::move(group));
  for (int look = 0; look < kLooks; ++look) {
    std::erase_if(doomed_, [&](const auto& group) { return remove(*group); });
    if (doomed_.empty() || !env_->wait({}, env_->now() + kPause)) break;
  }
  if (division_) undo_division(*env_, *division_);
  if (anchor_) (void)env_->signal_group(anchor_->pid, SIGKILL);
}

bool Groups::has(std::string_view controller) const {
  if (plan_.method == GroupPlan::Method::none) return false;
  if (division_)
    return std::ranges::find(division_->controllers, controller) != division_->controllers.end();
  return std::ranges::find(parents_, controller, &Parent::controller) != parents_.end();
}

std::string Groups::enforced() const {
  std::string list;
  for (const auto controller : kGroupControllers)
    if (has(controller)) list += fmt::format("{}{}", list.empty() ? "" : ", ", controller);
  if (list.empty()) return list;
  return fmt::format("{} by cgroup {}", list, division_ ? "v2" : "v1");
}

std::string Groups::not_held(const Resources& resources) const {
  std::vector<std::string> loose;
  if (resources.get(Known::mem) > 0 && !has("memory")) loose.emplace_back("mem");
  if (resources.get(Known::cpu) % 1000 != 0 && !has("cpu")) loose.emplace_back("cpu");
  return join(loose, ", ");
}

std::string Groups::advisory(const Resources& resources) const {
  std::string text = not_held(resources);
  const bool because = !text.empty() && !plan_.because.empty();
  if (resources.get(Known::disk) > 0) text += text.empty() ? "disk" : ", disk";
  return because ? fmt::format("{}: {}", text, plan_.because) : text;
}

bool Groups::holds_as_is(const Resources& resources) const {
  if (prepared_ || plan_.method == GroupPlan::Method::none ||
      plan_.method == GroupPlan::Method::beside)
    return true;
  return not_held(resources).empty();
}

std::string Groups::file(const Parent& parent, const Group& group, std::string_view name) const {
  return fmt::format("{}/{}{}{}", parent.directory, group.name, name.empty() ? "" : "/", name);
}

Result<std::unique_ptr<Group>> Groups::make() {
  auto group = std::make_unique<Group>();
  group->name = fmt::format("{}.{}{}", prefix_, ++made_, group_name_end(*env_));
  for (const auto& parent : parents_) {
    const auto made = env_->make_directory(file(parent, *group, ""), 0755);
    if (made) continue;
    remove(*group);
    return std::unexpected(made.error());
  }
  open_files(*group);
  return group;
}

std::unique_ptr<Group> Groups::acquire(const Block& limits) {
  if (!prepared_ && has_limits(limits.resources)) {
    if (options_.may_move || plan_.method == GroupPlan::Method::beside)
      prepare();
    else if (plan_.method != GroupPlan::Method::none)
      give_up("this process may not be moved into another control group");
  }
  if (parents_.empty() || plan_.method == GroupPlan::Method::none) return nullptr;
  auto group = find_or_make(limits);
  if (group) return *std::move(group);
  give_up(group.error().message);
  return nullptr;
}

Result<std::unique_ptr<Group>> Groups::find_or_make(const Block& limits) {
  std::erase_if(doomed_, [&](const auto& group) { return remove(*group); });
  // The one that had these very limits needs no writing.
  auto found = std::ranges::find(idle_, limits, [](const auto& group) { return group->limits; });
  if (found == idle_.end() && !idle_.empty()) found = idle_.end() - 1;
  std::unique_ptr<Group> group;
  bool limited = false;
  if (found != idle_.end()) {
    group = std::move(*found);
    idle_.erase(found);
    limited = group->limits == limits;
  } else {
    BERTH_ASSIGN(group, make());
  }
  if (const auto status = limited ? Status() : limit(*group, limits); !status) {
    remove(*group);
    return std::unexpected(status.error());
  }
  if (group->peak && !division_) (void)env_->write_all(group->peak, "0");  // v1: begin anew
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
      open(group.directory, parent, "", false);
    }
  }
  // Every task joins the pids group, where there is one.
  const auto pids = std::ranges::find(parents_, "pids", &Parent::controller);
  const Parent& counted = pids != parents_.end() ? *pids : parents_.front();
  open(group.processes, counted, "cgroup.procs", false);
}

Status Groups::limit(Group& group, const Block& limits) {
  group.limits = limits;
  if (division_) return limit_unified(parents_.front(), group, limits);
  const std::int64_t mem = limits.resources.get(Known::mem);
  const std::int64_t quota_us = limits.resources.get(Known::cpu) * kPeriodUs / 1000;
  const std::string cores = core_list(limits);
  group.join_files.clear();
  for (const auto& parent : parents_) {
    const auto put = [&](std::string_view name, const std::string& text) {
      return env_->write_into(file(parent, group, name), text);
    };
    if (parent.controller == "cpuset") {
      if (cores.empty()) continue;  // an empty cpuset takes no process
      const auto nodes = env_->read_file(parent.directory + "/cpuset.mems", kSmallFile);
      BERTH_TRY(put("cpuset.mems", std::string(trim(nodes.value_or("0")))));
      BERTH_TRY(put("cpuset.cpus", cores));
    } else if (parent.controller == "memory") {
      BERTH_TRY(put("memory.limit_in_bytes", mem > 0 ? fmt::format("{}", mem) : "-1"));
    } else if (parent.controller == "pids") {
      BERTH_TRY(put("pids.max", fmt::format("{}", kMostPids)));
    } else if (parent.controller == "cpu") {
      if (!takes_quota(limits)) continue;  // joining costs a little of every start, for nothing
      BERTH_TRY(put("cpu.cfs_quota_us", fmt::format("{}", quota_us)));
    }
    // v1 moves one thread through "tasks", twelve times as fast as through "cgroup.procs".
    BERTH_ASSIGN(os::Fd join, env_->open_write(file(parent, group, "tasks")));
    group.join_files.push_back(std::move(join));
  }
  return {};
}

/// A group of v2 serves one task, so that only what differs from a new group's limits is written.
Status Groups::limit_unified(const Parent& parent, Group& group, const Block& limits) {
  const std::int64_t mem = limits.resources.get(Known::mem);
  const std::int64_t quota_us = limits.resources.get(Known::cpu) * kPeriodUs / 1000;
  const std::string cores = core_list(limits);
  const auto put = [&](std::string_view name, const std::string& text) {
    return env_->write_into(file(parent, group, name), text);
  };
  if (mem > 0) {
    BERTH_TRY(put("memory.max", fmt::format("{}", mem)));
    (void)put("memory.swap.max", "0");  // absent where the kernel counts no swap
    // Else a shell goes on, and exits with a code of its own, when its child is killed.
    BERTH_TRY(put("memory.oom.group", "1"));
  }
  if (has("pids")) BERTH_TRY(put("pids.max", fmt::format("{}", kMostPids)));
  if (has("cpu") && takes_quota(limits))
    BERTH_TRY(put("cpu.max", fmt::format("{} {}", quota_us, kPeriodUs)));
  if (has("cpuset") && !cores.empty()) BERTH_TRY(put("cpuset.cpus", cores));
  if (!group.directory) return fail(ErrorKind::io, "{}: cannot be opened", group.name);
  return {};
}

GroupUsage Groups::usage(Group& group) {
  GroupUsage usage;
  usage.peak_mem = parse_integer(trim(read(group.peak))).value_or(0);
  group.oom_kills_seen = number_after(read(group.events), "oom_kill");
  usage.oom_kills = group.oom_kills_seen - group.oom_kills_before;
  return usage;
}

void Groups::kill_all(const Group& group) {
  constexpr int kKillRounds = 16;  // a process that forks meanwhile is found in the next round
  if (division_) {                 // kills what is below it too
    (void)env_->write_into(file(parents_.front(), group, "cgroup.kill"), "1");
    return;
  }
  const auto counted = std::ranges::find(parents_, "pids", &Parent::controller);
  const Parent& parent = counted != parents_.end() ? *counted : parents_.front();
  for (const auto& below : groups_below(file(parent, group, "")))
    kill_listed(env_->read_file(below + "/cgroup.procs", kSmallFile).value_or(""));
  for (int round = 0; round < kKillRounds; ++round) {
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
  if (division_) {
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
    const auto made = parse_group_name(name);
    if (!made || may_live(*env_, *made)) continue;
    const std::string directory = parent.directory + "/" + name;
    if (made->leaf) {  // others may live on in it
      (void)env_->remove_directory(directory);
      continue;
    }
    const bool unified = parent.controller == "unified";
    if (unified) (void)env_->write_into(directory + "/cgroup.kill", "1");
    kill_listed(env_->read_file(directory + "/cgroup.procs", kSmallFile).value_or(""));
    for (const auto& below : groups_below(directory)) {
      kill_listed(env_->read_file(below + "/cgroup.procs", kSmallFile).value_or(""));
      (void)env_->remove_directory(below);
    }
    (void)env_->remove_directory(directory);
  }
}

}  // namespace berth::machine
