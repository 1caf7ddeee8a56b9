#include "berth/machine/groups.h"

#include <gtest/gtest.h>

#include <csignal>

#include "berth/os/fake_env.h"

namespace berth::machine {
namespace {

/// A kernel's cgroup tree in memory: a directory that is made comes with the files it should have.
class KernelEnv final : public os::FakeEnv {
 public:
  void mount_v2(const std::string& group) {
    put("/proc/self/cgroup", "0::" + group + "\n");
    put("/proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    files_of_new = {"cgroup.procs",  "cgroup.kill", "memory.max", "memory.peak",
                    "memory.events", "pids.max",    "cpu.max",    "cpuset.cpus"};
    put("/sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu memory pids\n");
  }
  void mount_v1() {
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
    if (read_only) return fail(ErrorKind::denied, "{}: read-only", path);
    BERTH_TRY(FakeEnv::make_directory(path, mode));
    if (path.find("/berth.") != std::string::npos)
      for (const auto& name : files_of_new) put(path + "/" + name, "");
    return {};
  }
  Status remove_directory(const std::string& path) override {
    for (const auto& name : files_of_new) (void)remove_file(path + "/" + name);
    return FakeEnv::remove_directory(path);
  }
  Status write_into(const std::string& path, std::string_view text) override {
    const bool control = path.ends_with("cgroup.subtree_control");
    return control && find(path) != nullptr ? Status() : FakeEnv::write_into(path, text);
  }
  Status write_all(const os::Fd&, std::string_view) override { return {}; }

  std::vector<std::string> files_of_new;
  bool read_only = false;
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

TEST(Groups, V2UsesOurGroupOrTheOneAboveIt) {
  KernelEnv env;
  env.mount_v2("/user.slice");
  Groups groups(env);
  EXPECT_EQ(groups.enforced(), "cpuset, memory, pids, cpu by cgroup v2");
  auto group = groups.acquire(block(500, 1 << 20, {{0, 0, 500}}));
  ASSERT_TRUE(group);
  const std::string name = group->name;
  EXPECT_EQ(*env.find("/sys/fs/cgroup/" + name + "/cpu.max"), "50000 100000");
  EXPECT_EQ(*env.find("/sys/fs/cgroup/" + name + "/memory.max"), "1048576");
  env.put("/sys/fs/cgroup/" + name + "/memory.events", "low 0\noom 1\noom_kill 1\n");
  EXPECT_EQ(groups.usage(*group).oom_kills, 1);
  groups.release(std::move(group));
  EXPECT_EQ(env.find("/sys/fs/cgroup/" + name + "/memory.max"), nullptr)
      << "a v2 group counts its peak from its making, so it serves one task";
}

TEST(Groups, NothingWritableIsAdvisory) {
  KernelEnv env;
  env.mount_v1();
  env.read_only = true;
  Groups groups(env);
  EXPECT_EQ(groups.enforced(), "");
  EXPECT_EQ(groups.acquire(block(1000, 0, {})), nullptr);
  EXPECT_EQ(groups.advisory(block(1500, 1, {}).resources), "mem, cpu");
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
