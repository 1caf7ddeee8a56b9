#include "berth/machine/enclosing_task.h"

#include <gtest/gtest.h>

#include "berth/machine/ledger/ledger.h"
#include "berth/testing/fake_env.h"

namespace berth::machine {
namespace {

Block half_a_core() {
  Block block;
  block.resources.set(Known::cpu, 500);
  block.resources.set("licence", 1);
  block.cores = {{2, 0, 500}};
  block.devices = {{.uuid = "GPU-b", .index = 1, .node = 0, .memory = 100}};
  return block;
}

TEST(EnclosingTask, IsReadAsItIsWritten) {
  os::FakeEnv env;
  EXPECT_FALSE(enclosing_task(env));
  env.variables["BERTH_ALLOC"] = write_enclosing_task(env, Token{42}, half_a_core());
  const auto task = enclosing_task(env);
  ASSERT_TRUE(task);
  EXPECT_EQ(task->id, fmt::format("{}.{}.42", env.self().pid, env.self().started_at));
  EXPECT_EQ(task->block, half_a_core());
  env.dead.insert(env.self().pid);
  EXPECT_FALSE(enclosing_task(env)) << "of another machine, or of a task that has ended";
  env.dead.clear();
  for (const char* wrong : {"", "x", "1.2.3", "1.2 cpu=1  ", "9.9.x cpu=1  ", "9.9.9 cpu"}) {
    env.variables["BERTH_ALLOC"] = wrong;
    EXPECT_FALSE(enclosing_task(env)) << wrong;
  }
}

TEST(EnclosingTask, IsTheMachineOfWhatRunsInIt) {
  Capacity capacity;
  capacity.total.set(Known::cpu, 4000);
  capacity.total.set(Known::mem, 1000);
  capacity.total.set("licence", 5);
  capacity.total.set("lane", 3);
  capacity.cores = {0, 1, 2, 3};
  capacity.nodes = {{0, {0, 1}}, {1, {2, 3}}};
  narrow(capacity, half_a_core());
  EXPECT_EQ(capacity.total.get(Known::cpu), 500);
  EXPECT_EQ(capacity.total.get(Known::mem), 1000) << "it was not said how much";
  EXPECT_EQ(capacity.total.get("licence"), 1);
  EXPECT_EQ(capacity.total.get("lane"), 0);
  EXPECT_EQ(capacity.cores, std::vector<int>{2});
  ASSERT_EQ(capacity.nodes.size(), 1U);
  EXPECT_EQ(capacity.nodes[0].node, 1);

  std::vector<DeviceShare> devices = {{.uuid = "GPU-a", .index = 0, .node = 0, .memory = 300},
                                      {.uuid = "GPU-b", .index = 1, .node = 0, .memory = 300}};
  narrow(devices, half_a_core());
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].uuid, "GPU-b");
  EXPECT_EQ(devices[0].memory, 100);
}

TEST(EnclosingTask, LedgersOfThoseWhoseWorkerIsGoneAreRemoved) {
  os::FakeEnv env;
  const auto entries = [&](const std::string& id) {
    const std::string directory = task_ledger("/run/lock/berth", id);
    EXPECT_TRUE(env.make_directory(directory, 0700));
    EXPECT_TRUE(env.replace_file(directory + "/1000", "", 0600));
    return directory;
  };
  const auto living = entries("77.1.1"), dead = entries("78.1.1");
  env.dead.insert(78);
  ASSERT_TRUE(Ledger::open(env, "/run/lock/berth"));
  EXPECT_TRUE(env.status(living + "/1000"));
  EXPECT_FALSE(env.status(dead));
}

}  // namespace
}  // namespace berth::machine
