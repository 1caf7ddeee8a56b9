// Who lives among the holders of a ledger that containers share.
#include "berth/machine/ledger/ledger_holders.h"

#include <gtest/gtest.h>

#include "berth/machine/groups/group_plan.h"
#include "berth/machine/pid_namespace.h"
#include "berth/testing/fake_env.h"
#include "berth/testing/posix.h"

namespace berth::machine {
namespace {

constexpr os::ProcessIdentity kElsewhere{4'000'000, 1};  // no process here has this pid

class HoldersTest : public os::PosixTest {
 protected:
  bool alive(const os::ProcessIdentity& holder) { return Holders(*env_, directory_).alive(holder); }
  std::string file_of(const os::ProcessIdentity& holder) {
    return path(fmt::format("holder.{}.{}.77.{}", holder.pid, holder.started_at, env_->user()));
  }
};

TEST_F(HoldersTest, OneOfAnotherNamespaceIsJudgedByItsLock) {
  EXPECT_FALSE(alive(kElsewhere));
  auto lock = env_->lock_shared(file_of(kElsewhere));
  ASSERT_TRUE(lock);
  EXPECT_TRUE(alive(kElsewhere));
  EXPECT_FALSE(alive({kElsewhere.pid, 2})) << "another process of that pid";
  lock->reset();
  EXPECT_FALSE(alive(kElsewhere)) << "its file stays for a while";
}

TEST_F(HoldersTest, OneOfThisNamespaceNeedsNoFile) {
  EXPECT_TRUE(alive(env_->self()));
}

TEST_F(HoldersTest, TheLockOfThisProcessIsSeenByAllUsersAndMayBeTakenTwice) {
  if (pid_namespace(*env_) == 0) GTEST_SKIP() << "/proc does not name PID namespaces";
  const auto one = lock_as_holder(*env_, directory_), two = lock_as_holder(*env_, directory_);
  ASSERT_TRUE(one && two);
  const auto names = env_->list(directory_).value();
  ASSERT_EQ(names.size(), 1U);
  EXPECT_EQ(env_->status(path(names[0]))->mode, 0644U);
  EXPECT_FALSE(env_->lock_existing(path(names[0])));
}

TEST_F(HoldersTest, FilesOfTheDeadGoAndOthersStay) {
  const auto living = env_->lock_shared(file_of(kElsewhere));
  ASSERT_TRUE(env_->lock_shared(file_of({kElsewhere.pid + 1, 1})));
  put("holder.x", "");
  put("notes", "");
  for (int i = 0; i < 100; ++i) Holders(*env_, directory_).sweep_one();
  EXPECT_EQ(env_->list(directory_)->size(), 3U);
  EXPECT_TRUE(env_->status(file_of(kElsewhere)));
}

TEST_F(HoldersTest, OneWhoseFileCannotBeLockedMayLive) {
  if (env_->user() == 0) GTEST_SKIP() << "root may open any file";
  ASSERT_TRUE(env_->lock_shared(file_of(kElsewhere)));
  ASSERT_TRUE(env_->stamp(file_of(kElsewhere), 0, env_->wall()));
  EXPECT_TRUE(alive(kElsewhere));
}

TEST(GroupPlan, GroupsOfAnotherNamespaceMayHaveALivingMaker) {
  os::FakeEnv env;
  const auto outside = parse_group_name("berth.999.1.2");
  const auto inside = parse_group_name("berth.999.1.2.77"),
             leaf = parse_group_name("berth.9.1.runner.77");
  ASSERT_TRUE(outside && inside && leaf);
  EXPECT_TRUE(leaf->leaf);
  EXPECT_FALSE(parse_group_name("berth.999.1.2.x") || parse_group_name("berth.1.1.1.1.1"));
  env.dead.insert(999);
  EXPECT_EQ(group_name_end(env), "");
  EXPECT_FALSE(may_live(env, *outside));
  EXPECT_TRUE(may_live(env, *inside));
  ASSERT_TRUE(env.symbolic_link("pid:[77]", "/proc/self/ns/pid"));
  EXPECT_EQ(group_name_end(env), ".77");
  EXPECT_TRUE(may_live(env, *outside));
  EXPECT_FALSE(may_live(env, *inside));
}

TEST(PidNamespace, IsReadFromItsLink) {
  os::FakeEnv env;
  EXPECT_EQ(pid_namespace(env), 0U);
  ASSERT_TRUE(env.symbolic_link("pid:[4026531836]", "/proc/self/ns/pid"));
  EXPECT_EQ(pid_namespace(env), 4026531836U);
  EXPECT_EQ(container_namespace(env), 0U) << "outside all containers";
}

}  // namespace
}  // namespace berth::machine
