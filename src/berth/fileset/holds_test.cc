// What holds ask of the disk: a lock for a series of them, and each object read.
#include <gtest/gtest.h>

#include "berth/fileset/fileset.h"
#include "berth/testing/fake_env.h"
#include "berth/testing/fileset.h"

namespace berth::fileset {
namespace {

class ObjectLock : public ::testing::Test {
 protected:
  ObjectLock() {
    env_.put("/a", "one");
    a_ = store_.capture("/a", Expect::fresh)->fileset;
    env_.fault = [this](std::string_view call) -> std::optional<Error> {
      locks_ += call == "lock" ? 1 : 0;
      return std::nullopt;
    };
  }
  /// Whether anybody could remove something.
  bool is_free() { return env_.lock("/store/lock", false).has_value(); }

  os::FakeEnv env_;
  ObjectStore store_ = *ObjectStore::open(env_, "/store");
  Fileset a_;
  int locks_ = 0;
};

TEST_F(ObjectLock, IsTakenOnceForASeriesOfHolds) {
  std::vector<Hold> holds;
  holds.push_back(*store_.hold(a_));  // and the directory that others share
  const int alone = std::exchange(locks_, 0);
  store_.keep_lock();
  EXPECT_TRUE(is_free()) << "no hold has taken it";
  locks_ = 0;
  for (int i = 0; i < 10; ++i) holds.push_back(*store_.hold(a_));
  EXPECT_EQ(locks_, 1);
  EXPECT_GE(alone, 1);
  EXPECT_FALSE(is_free());
  store_.release_lock();
  EXPECT_TRUE(is_free());
  holds.push_back(*store_.hold(a_));
  EXPECT_TRUE(is_free()) << "a hold keeps it no more";
}

TEST_F(ObjectLock, WhatASeriesHoldsIsKept) {
  store_.keep_lock();
  const auto hold = store_.hold(a_);
  store_.release_lock();
  ASSERT_TRUE(ObjectStore::open(env_, "/store")->collect(keep({})));
  EXPECT_TRUE(store_.hold(a_));
}

TEST(ObjectRead, AnErrorOfTheDiskIsLookedAtTwiceBeforeTheObjectIsSetAside) {
  os::FakeEnv env;
  env.put("/a", "one");
  ObjectStore store = *ObjectStore::open(env, "/store");
  const auto fileset = store.capture("/a", Expect::fresh)->fileset;
  int errors = 1;
  env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "read_at" || errors-- <= 0) return std::nullopt;
    return Error{ErrorKind::io, "a fault"};
  };
  EXPECT_TRUE(store.hold(fileset));
  EXPECT_TRUE(store.take_damage().empty());
  errors = 2;
  EXPECT_EQ(store.hold(fileset).error().kind, ErrorKind::not_found);
  EXPECT_EQ(store.take_damage().size(), 1U);
}

}  // namespace
}  // namespace berth::fileset
