#include "berth/run/trials/checkpoint_copies.h"

#include <gtest/gtest.h>

#include "berth/testing/fake_env.h"

namespace berth::run {
namespace {

void lay_checkpoint(os::FakeEnv& env) {
  ASSERT_TRUE(env.make_directory("/run/checkpoints/1@5/deep/empty", 0700));
  env.put("/run/checkpoints/1@5/weights", "12345");
  env.put("/run/checkpoints/1@5/deep/state", "67");
  ASSERT_TRUE(env.symbolic_link("weights", "/run/checkpoints/1@5/latest"));
}

std::vector<std::string> paths_below(os::FakeEnv& env, const std::string& directory) {
  std::vector<std::string> paths;
  const auto found = env.tree(directory, 100);
  if (found)
    for (const auto& entry : *found) paths.push_back(entry.path + entry.target);
  return paths;
}

/// Turns the loop until the copy is there; false: it failed.
bool comes(os::FakeEnv& env, CheckpointCopies& copies, const std::string& from,
           const std::string& to) {
  for (int turns = 0; turns < 100; ++turns) {
    const auto there = copies.there(from, to);
    if (!there) return false;
    if (*there) return true;
    EXPECT_TRUE(env.loop().turn(env.now() + std::chrono::seconds(1)));
    copies.turn();
  }
  ADD_FAILURE() << "it never came";
  return false;
}

TEST(CheckpointCopies, ACopyHasAllThatTheOriginalHas) {
  os::FakeEnv env;
  lay_checkpoint(env);
  CheckpointCopies copies(env);
  ASSERT_TRUE(comes(env, copies, "/run/checkpoints/1@5", "/run/checkpoints/2@10"));
  EXPECT_EQ(paths_below(env, "/run/checkpoints/2@10"), paths_below(env, "/run/checkpoints/1@5"));
  EXPECT_EQ(env.read_file("/run/checkpoints/2@10/deep/state", 100), "67");
  env.put("/run/checkpoints/2@10/weights", "other");
  EXPECT_EQ(env.read_file("/run/checkpoints/1@5/weights", 100), "12345");
  EXPECT_FALSE(comes(env, copies, "/run/checkpoints/none", "/run/checkpoints/3@10"));
  EXPECT_FALSE(env.status("/run/checkpoints/3@10"));
  copies.remove("/run/checkpoints/1@5");
  EXPECT_FALSE(copies.busy());  // a run does not wait for it
}

/// Whichever call fails, there is no half copy, and the next try makes it whole.
TEST(CheckpointCopies, AFaultLeavesNothingHalf) {
  for (int failing = 0;; ++failing) {
    os::FakeEnv env;
    lay_checkpoint(env);
    int calls = 0;
    env.fault = [&](std::string_view) -> std::optional<Error> {
      return calls++ == failing ? std::optional(Error{ErrorKind::full, "no space"}) : std::nullopt;
    };
    const auto copied = copy_directory(env, "/run/checkpoints/1@5", "/run/checkpoints/2@10");
    const bool reached = calls > failing;
    env.fault = nullptr;
    const auto all = paths_below(env, "/run/checkpoints/1@5");
    if (env.status("/run/checkpoints/2@10"))
      EXPECT_EQ(paths_below(env, "/run/checkpoints/2@10"), all) << failing;
    else
      EXPECT_FALSE(copied) << failing;
    ASSERT_TRUE(env.remove_tree("/run/checkpoints/2@10"));
    ASSERT_TRUE(copy_directory(env, "/run/checkpoints/1@5", "/run/checkpoints/2@10"));
    EXPECT_EQ(paths_below(env, "/run/checkpoints/2@10"), all) << failing;
    if (!reached) {
      EXPECT_GT(failing, 5);
      return;
    }
  }
}

}  // namespace
}  // namespace berth::run
