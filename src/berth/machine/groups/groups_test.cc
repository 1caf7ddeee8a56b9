#include "berth/machine/groups/groups.h"

#include <gtest/gtest.h>

#include <csignal>

#include "berth/testing/fake_env.h"

namespace berth::machine {
namespace {

/// A kernel's cgroup tree in memory: a directory that is made comes with the files it should have.
class KernelEnv final : public os::FakeEnv {
 public:
  void mount_v1() {
    for (const auto* group : {"/cg/cpuset", "/cg/memory/lab", "/cg/pids", "/cg/cpu"})
      (void)FakeEnv::make_directory(group, 0755);
    put("/proc/self/cgroup", "3:cpuset:/\n2:memory:/lab\n4:pids:/\n1:cpu:/\n");
    put("/proc/self/mountinfo",
        "31 20 0:31 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
        "32 20 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n"
        "33 20 0:33 / /cg/pids rw - cgroup cgroup rw,pids\n"
        "34 20 0:34 / /cg/cpu rw - cgroup cgroup rw,cpu\n");
    put("/cg/cpuset/cpuset.mems", "0-1\n");
    files_of_new = {"tasks",       "cgroup.procs",          "cpuset.cpus",
                    "cpuset.mems", "memory.limit_in_bytes", "memory.max_usage_in_bytes",
                    "pids.max",    "memory.oom_control",    "cpu.cfs_quota_us"};
  }
  Status make_directory(const std::string& path, mode_t mode) override {
    BERTH_TRY(FakeEnv::make_directory(path, mode));
    if (path.find("/berth.") != std::string::npos)
      for (const auto& name : files_of_new) put(path + "/" + name, "");
    return {};
  }
  Status remove_directory(const std::string& path) override {
    for (const auto& name : files_of_new) (void)remove_file(path + "/" + name);
    return FakeEnv::remove_directory(path);
  }
  Status write_all(const os::Fd&, std::string_view) override { return {}; }

  std::vector<std::string> files_of_new;
};

Block block(std::int64_t milli, std::int64_t mem, std::vector<CoreShare> cores) {
  Block block;
  block.resources.set(Known::cpu, milli);
  block.resources.set(Known::mem, mem);
  block.cores = std::move(cores);
  return block;
}

TEST(Groups, V1LimitsAreWrittenWhereTheyBelong) {
  KernelEnv env;
  env.mount_v1();
  Groups groups(env);
  EXPECT_EQ(groups.enforced(), "cpuset, memory, pids, cpu by cgroup v1");
  const auto group = groups.acquire(block(1500, 1 << 20, {{2, 0, 1000}, {3, 0, 500}}));
  ASSERT_TRUE(group);
  const std::string name = "/" + group->name;
  EXPECT_EQ(*env.find("/cg/cpuset" + name + "/cpuset.cpus"), "2,3");
  EXPECT_EQ(*env.find("/cg/cpuset" + name + "/cpuset.mems"), "0-1");
  EXPECT_EQ(*env.find("/cg/memory/lab" + name + "/memory.limit_in_bytes"), "1048576");
  EXPECT_EQ(*env.find("/cg/cpu" + name + "/cpu.cfs_quota_us"), "150000");
  EXPECT_EQ(group->join_files.size(), 4U);
}

TEST(Groups, WholeCoresTakeNoQuota) {
  KernelEnv env;
  env.mount_v1();
  Groups groups(env);
  const auto group = groups.acquire(block(2000, 0, {{0, 0, 1000}, {1, 0, 1000}}));
  EXPECT_EQ(*env.find("/cg/cpu/" + group->name + "/cpu.cfs_quota_us"), "");
  EXPECT_EQ(*env.find("/cg/memory/lab/" + group->name + "/memory.limit_in_bytes"), "-1");
  EXPECT_EQ(group->join_files.size(), 3U);
}

TEST(Groups, ReusedBetweenTasksWithTheirOwnFigures) {
  KernelEnv env;
  env.mount_v1();
  Groups groups(env);
  const Block limits = block(1000, 1 << 20, {{0, 0, 1000}});
  auto group = groups.acquire(limits);
  const std::string name = group->name;
  const std::string memory = "/cg/memory/lab/" + name;
  env.put(memory + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  env.put(memory + "/memory.max_usage_in_bytes", "4096\n");
  EXPECT_EQ(groups.usage(*group).oom_kills, 2);
  EXPECT_EQ(groups.usage(*group).peak_mem, 4096);
  groups.release(std::move(group));
  group = groups.acquire(limits);
  EXPECT_EQ(group->name, name);
  EXPECT_EQ(groups.usage(*group).oom_kills, 0) << "those were the last task's";
}

TEST(Groups, OtherLimitsAreWrittenOverTheOldOnes) {
  KernelEnv env;
  env.mount_v1();
  Groups groups(env);
  groups.release(groups.acquire(block(500, 1 << 20, {{0, 0, 500}})));
  const auto group = groups.acquire(block(1000, 1 << 21, {{1, 0, 1000}}));
  EXPECT_EQ(*env.find("/cg/memory/lab/" + group->name + "/memory.limit_in_bytes"), "2097152");
  EXPECT_EQ(*env.find("/cg/cpuset/" + group->name + "/cpuset.cpus"), "1");
}

TEST(Groups, NothingWritableIsAdvisory) {
  KernelEnv env;
  env.mount_v1();
  env.read_only = {"/cg/cpuset", "/cg/memory/lab", "/cg/pids", "/cg/cpu"};
  Groups groups(env);
  EXPECT_EQ(groups.enforced(), "");
  EXPECT_EQ(groups.acquire(block(1000, 0, {})), nullptr);
  EXPECT_EQ(groups.advisory(block(1500, 1, {}).resources),
            "mem, cpu: no control group that this user may write to");
  EXPECT_EQ(groups.advisory(block(1000, 0, {}).resources), "");
}

TEST(Groups, ThoseOfADeadBerthAreRemoved) {
  KernelEnv env;
  env.mount_v1();
  for (const std::string controller : {"cpuset", "memory/lab", "pids", "cpu"})
    for (const std::string pid : {"77", "78"})
      ASSERT_TRUE(env.make_directory("/cg/" + controller + "/berth." + pid + ".5.1", 0755));
  env.dead.insert(77);
  Groups groups(env);
  for (const std::string controller : {"cpuset", "memory/lab", "pids", "cpu"}) {
    EXPECT_FALSE(env.status("/cg/" + controller + "/berth.77.5.1"));
    EXPECT_TRUE(env.status("/cg/" + controller + "/berth.78.5.1"));
  }
}

TEST(Groups, ALimitThatCannotBeSetMakesAllOfThemAdvice) {
  KernelEnv env;
  env.mount_v1();
  Groups groups(env);
  env.fault = [](std::string_view call) -> std::optional<Error> {
    if (call == "write_into") return Error{ErrorKind::io, "memory.limit_in_bytes: Device busy"};
    return std::nullopt;
  };
  EXPECT_EQ(groups.acquire(block(1500, 1 << 20, {{0, 0, 1000}, {1, 0, 500}})), nullptr);
  env.fault = nullptr;
  EXPECT_EQ(groups.acquire(block(1500, 1 << 20, {{0, 0, 1000}, {1, 0, 500}})), nullptr);
  EXPECT_EQ(groups.advisory(block(1500, 1, {}).resources),
            "mem, cpu: memory.limit_in_bytes: Device busy");
}

TEST(Groups, ItsOwnAreRemovedAtTheEnd) {
  KernelEnv env;
  env.mount_v1();
  std::string name;
  {
    Groups groups(env);
    auto group = groups.acquire(block(1000, 0, {{0, 0, 1000}}));
    name = group->name;
    groups.release(std::move(group));
  }
  EXPECT_FALSE(env.status("/cg/pids/" + name));
  EXPECT_EQ(env.descriptors(), 0U);
}

}  // namespace
}  // namespace berth::machine
