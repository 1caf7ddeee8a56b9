// Control groups v2 on a tree in memory that has the kernel's own rules. That these are its rules
// was measured on a real Debian, where tests/vm/ tries the same; here stands what a real one cannot
// be made to do.
#include <gtest/gtest.h>

#include "berth/base/text.h"
#include "berth/machine/groups/groups.h"
#include "berth/testing/fake_env.h"

namespace berth::machine {
namespace {

using Method = GroupPlan::Method;

/// One hierarchy at /cg. Who is in which group is kept apart from the files.
class UnifiedKernel final : public os::FakeEnv {
 public:
  explicit UnifiedKernel(const std::string& own) : own_(own) {
    put("/proc/self/mountinfo", "30 20 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    std::string path = "/cg";
    add(path);
    for (const auto part : split(std::string_view(own).substr(1), '/'))
      add(path += "/" + std::string(part));
    put("/cg/cgroup.controllers", "cpuset cpu io memory pids\n");
    members[path] = {"1000", "77"};
    locate();
  }
  /// The kernel's tree is root's.
  Result<os::FileStatus> status(const std::string& path) override {
    BERTH_ASSIGN(auto status, FakeEnv::status(path));
    if (path.starts_with("/cg")) status.owner = 0;
    return status;
  }
  Status make_directory(const std::string& path, mode_t mode) override {
    BERTH_TRY(FakeEnv::make_directory(path, mode));
    if (path.starts_with("/cg/")) add(path);
    return {};
  }
  Status remove_directory(const std::string& path) override {
    if (!members[path].empty()) return fail(ErrorKind::io, "{}: Device or resource busy", path);
    for (const auto* name : kFiles) (void)remove_file(path + "/" + name);
    members.erase(path);
    return FakeEnv::remove_directory(path);
  }
  Status write_into(const std::string& path, std::string_view text) override {
    const std::string directory = path.substr(0, path.rfind('/'));
    if (path.ends_with("/cgroup.procs")) return join(directory, text);
    if (path.ends_with("/cgroup.subtree_control")) return control(directory, text);
    return FakeEnv::write_into(path, text);
  }
  Result<std::string> read_file(const std::string& path, std::size_t limit) override {
    if (path.ends_with("/cgroup.procs")) {
      std::string list;
      for (const auto& pid : members[path.substr(0, path.rfind('/'))]) list += pid + "\n";
      return list;
    }
    return FakeEnv::read_file(path, limit);
  }
  /// A directory can be opened too.
  Result<os::Fd> open_read(const std::string& path) override {
    return FakeEnv::open_read(members.contains(path) ? path + "/cgroup.procs" : path);
  }
  void move_us(const std::string& group) {
    for (auto& [directory, pids] : members) pids.erase("1000");
    own_ = group;
    members["/cg" + group].insert("1000");
    locate();
  }
  std::string type(const std::string& group) { return *find("/cg" + group + "/cgroup.type"); }

  std::map<std::string, std::set<std::string>> members;  // pids, by directory

 private:
  static constexpr std::array kFiles{"cgroup.type", "cgroup.procs",    "cgroup.subtree_control",
                                     "memory.max",  "memory.swap.max", "memory.oom.group",
                                     "memory.peak", "memory.events",   "cgroup.kill",
                                     "pids.max",    "cpu.max",         "cpuset.cpus"};
  void add(const std::string& directory) {
    (void)FakeEnv::make_directory(directory, 0755);
    members[directory];
    for (const auto* name : kFiles) put(directory + "/" + name, "");
    put(directory + "/cgroup.type", "domain\n");
  }
  void locate() { put("/proc/self/cgroup", "0::" + own_ + "\n"); }
  Status join(const std::string& directory, std::string_view pid) {
    if (gone.contains(std::string(pid))) {
      for (auto& [each, pids] : members) pids.erase(std::string(pid));
      return fail(ErrorKind::not_found, "{}: No such process", pid);
    }
    for (auto& [each, pids] : members) pids.erase(std::string(pid));
    members[directory].insert(std::string(pid));
    return {};
  }
  Status control(const std::string& directory, std::string_view text) {
    const std::string name(text.substr(1));
    std::string given = *find(directory + "/cgroup.subtree_control");
    if (text[0] == '-') {
      if (const auto at = given.find(name + " "); at != given.npos)
        given.erase(at, name.size() + 1);
    } else {
      if (withheld.contains(name))
        return fail(ErrorKind::not_found, "{}: no such controller", name);
      if (!members[directory].empty()) {
        if (name == "memory") return fail(ErrorKind::io, "{}: Device or resource busy", directory);
        put(directory + "/cgroup.type", "domain threaded\n");
      }
      given += name + " ";
    }
    put(directory + "/cgroup.subtree_control", given);
    if (given.empty()) put(directory + "/cgroup.type", "domain\n");
    return {};
  }
  std::string own_;

 public:
  std::set<std::string> gone;      // pids that have ended meanwhile
  std::set<std::string> withheld;  // controllers
};

Block limited(std::int64_t milli, std::int64_t mem) {
  Block block;
  block.resources.set(Known::cpu, milli);
  block.resources.set(Known::mem, mem);
  block.cores = {{0, 0, static_cast<int>(milli)}};
  return block;
}

const GroupOptions kAgent{.may_move = true};

TEST(GroupsV2, ADelegatedGroupIsDividedAndPutBack) {
  UnifiedKernel env("/lab");
  env.attributes["/cg/lab trusted.delegate"] = "1";
  {
    Groups groups(env, kAgent);
    EXPECT_EQ(groups.enforced(), "") << "nothing is made before a limit asks for it";
    EXPECT_EQ(env.members["/cg/lab"].size(), 2U);
    auto group = groups.acquire(limited(500, 1 << 20));
    ASSERT_TRUE(group);
    EXPECT_EQ(groups.enforced(), "cpuset, memory, pids, cpu by cgroup v2");
    const std::string at = "/cg/lab/" + group->name;
    EXPECT_EQ(*env.find(at + "/memory.max"), "1048576");
    EXPECT_EQ(*env.find(at + "/memory.oom.group"), "1");
    EXPECT_EQ(*env.find(at + "/cpu.max"), "50000 100000");
    EXPECT_EQ(*env.find(at + "/cpuset.cpus"), "0");
    EXPECT_TRUE(group->directory);
    EXPECT_EQ(env.type("/lab"), "domain\n");
    EXPECT_TRUE(env.members["/cg/lab"].empty());
    env.put(at + "/memory.events", "low 0\noom 1\noom_kill 1\n");
    EXPECT_EQ(groups.usage(*group).oom_kills, 1);
    groups.release(std::move(group));
    EXPECT_FALSE(env.status(at)) << "it counts its peak from its making, so it serves one task";
  }
  EXPECT_EQ(env.members["/cg/lab"].size(), 2U);
  EXPECT_EQ(*env.find("/cg/lab/cgroup.subtree_control"), "");
  EXPECT_EQ(env.list("/cg/lab")->size(), 12U) << "no group is left";
  EXPECT_EQ(env.descriptors(), 0U);
}

TEST(GroupsV2, AGroupThatIsNotOursIsLeftAsItIs) {
  UnifiedKernel env("/user.slice/session-1.scope");
  Groups groups(env, kAgent);
  EXPECT_EQ(groups.plan().method, Method::none);
  EXPECT_EQ(groups.acquire(limited(500, 1 << 20)), nullptr);
  EXPECT_EQ(groups.advisory(limited(500, 1).resources),
            "mem, cpu: this group is not delegated to us, and there is no systemd to ask for one");
  EXPECT_EQ(env.type("/user.slice/session-1.scope"), "domain\n");
  EXPECT_EQ(env.members["/cg/user.slice/session-1.scope"].size(), 2U);
}

TEST(GroupsV2, SystemdGivesAScopeOnce) {
  UnifiedKernel env("/system.slice/cron.service");
  ASSERT_TRUE(env.FakeEnv::make_directory("/run/systemd/system", 0755));
  int asked = 0;
  env.scope = [&](const std::string& name, const std::string& part_of) -> Status {
    ++asked;
    EXPECT_EQ(part_of, "cron.service");
    BERTH_TRY(env.make_directory("/cg/system.slice/" + name, 0755));
    env.move_us("/system.slice/" + name);
    return {};
  };
  Groups groups(env, kAgent);
  EXPECT_EQ(groups.plan().method, Method::scope);
  EXPECT_EQ(groups.acquire(limited(1000, 0)), nullptr) << "it has nothing to be held to";
  EXPECT_EQ(asked, 0);
  const auto first = groups.acquire(limited(500, 1 << 20));
  const auto second = groups.acquire(limited(500, 1 << 20));
  const auto third = groups.acquire(limited(1000, 0));
  EXPECT_TRUE(first && second && third) << "once there, every task has a group";
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(env.members["/cg/system.slice/cron.service"], std::set<std::string>{"77"});
}

TEST(GroupsV2, WhatSystemdRefusesIsAdviceAndIsAskedOnce) {
  UnifiedKernel env("/user.slice/session-1.scope");
  env.uid = 1000;
  ASSERT_TRUE(env.FakeEnv::make_directory("/run/systemd/system", 0755));
  EXPECT_NE(plan_groups(env, "", false).because.find("loginctl enable-linger 1000"),
            std::string::npos);
  env.put("/run/user/1000/bus", "");
  int asked = 0;
  env.scope = [&](const std::string&, const std::string&) -> Status {
    ++asked;
    return fail(ErrorKind::denied, "Access denied");
  };
  Groups groups(env, {.may_move = true, .anchor = {"/proc/self/exe", "anchor"}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(groups.acquire(limited(500, 1 << 20)), nullptr);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(env.spawned(), 1U) << "what keeps the session stood there before we would have left";
  EXPECT_EQ(groups.advisory(limited(1000, 1).resources), "mem: Access denied");
}

TEST(GroupsV2, LimitsThatOthersSetAreNotLeft) {
  UnifiedKernel env("/system.slice/job.service");
  ASSERT_TRUE(env.FakeEnv::make_directory("/run/systemd/system", 0755));
  EXPECT_EQ(plan_groups(env, "", false).method, Method::scope);
  EXPECT_EQ(plan_groups(env, "", true).method, Method::none) << "a batch system's job";
  env.put("/cg/system.slice/job.service/memory.max", "1073741824\n");
  EXPECT_EQ(plan_groups(env, "", false).method, Method::none);
  UnifiedKernel within("/berth-9.scope/berth.9.9.4/inner");
  ASSERT_TRUE(within.FakeEnv::make_directory("/run/systemd/system", 0755));
  EXPECT_EQ(plan_groups(within, "", false).method, Method::none) << "a Berth task's";
}

TEST(GroupsV2, ABerthWithinABerth) {
  UnifiedKernel task("/berth-9.scope/berth.9.9.4");
  EXPECT_EQ(plan_groups(task, "", false).method, Method::split)
      << "the task's group is its own to divide";
  UnifiedKernel leaf("/lab/berth.9.9.runner");
  leaf.put("/cg/lab/cgroup.subtree_control", "memory pids ");
  leaf.withheld = {"cpu", "cpuset"};
  Groups groups(leaf);
  EXPECT_EQ(groups.plan().method, Method::beside);
  const auto group = groups.acquire(limited(1000, 1 << 20));
  ASSERT_TRUE(group) << "no process has to be moved for that";
  EXPECT_TRUE(leaf.status("/cg/lab/" + group->name));
  EXPECT_EQ(groups.enforced(), "memory, pids by cgroup v2");
  EXPECT_EQ(groups.not_held(limited(500, 1).resources), "cpu");
}

TEST(GroupsV2, TheLastToGoPutsBackWhatAnotherDivided) {
  UnifiedKernel env("/lab/berth.9.9.runner");
  env.put("/cg/lab/cgroup.subtree_control", "memory pids ");
  const auto shares = [&] {
    Groups groups(env);
    auto group = groups.acquire(limited(1000, 1 << 20));
    ASSERT_TRUE(group);
    groups.release(std::move(group));
  };
  shares();
  EXPECT_EQ(env.members["/cg/lab/berth.9.9.runner"].size(), 2U) << "its maker lives";
  EXPECT_FALSE(env.status("/cg/lab/berth.1000.5000.runner"));
  env.dead.insert(9);
  shares();
  EXPECT_EQ(env.members["/cg/lab"].size(), 2U);
  EXPECT_FALSE(env.status("/cg/lab/berth.9.9.runner"));
  EXPECT_EQ(*env.find("/cg/lab/cgroup.subtree_control"), "");
}

TEST(GroupsV2, WhereMemoryIsNotGivenAllIsPutBack) {
  UnifiedKernel env("/lab");
  env.attributes["/cg/lab user.delegate"] = "1";
  env.withheld = {"memory"};
  Groups groups(env, kAgent);
  EXPECT_EQ(groups.acquire(limited(500, 1 << 20)), nullptr);
  EXPECT_EQ(groups.plan().method, Method::none);
  EXPECT_EQ(env.members["/cg/lab"].size(), 2U);
  EXPECT_EQ(env.list("/cg/lab")->size(), 12U);
}

TEST(GroupsV2, ProcessesThatEndMeanwhileAndThoseThatCannotBeSeen) {
  UnifiedKernel env("/lab");
  env.attributes["/cg/lab trusted.delegate"] = "1";
  env.gone = {"77"};
  EXPECT_TRUE(Groups(env, kAgent).acquire(limited(500, 1 << 20)));
  UnifiedKernel foreign("/lab");
  foreign.attributes["/cg/lab trusted.delegate"] = "1";
  foreign.members["/cg/lab"].insert("0");
  Groups groups(foreign, kAgent);
  EXPECT_EQ(groups.acquire(limited(500, 1 << 20)), nullptr);
  EXPECT_EQ(foreign.members["/cg/lab"], (std::set<std::string>{"0", "1000", "77"}));
}

TEST(GroupsV2, ARunnerIsNotMoved) {
  UnifiedKernel env("/lab");
  env.attributes["/cg/lab trusted.delegate"] = "1";
  Groups groups(env);
  EXPECT_FALSE(groups.holds_as_is(limited(500, 0).resources));
  EXPECT_TRUE(groups.holds_as_is(limited(1000, 0).resources));
  EXPECT_EQ(groups.acquire(limited(500, 0)), nullptr);
  EXPECT_EQ(env.members["/cg/lab"].size(), 2U);
}

}  // namespace
}  // namespace berth::machine
