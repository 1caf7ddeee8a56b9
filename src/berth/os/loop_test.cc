#include "berth/os/loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "berth/testing/fake_env.h"

namespace berth::os {
namespace {

using std::chrono::milliseconds;

class LoopTest : public ::testing::Test {
 protected:
  /// Both ends of a connection.
  std::pair<Fd, Fd> connect() {
    Fd listener = *env.listen_local("/socket");
    Fd near = *env.connect_local("/socket");
    Fd far = *std::move(*env.accept_local(listener));
    return {std::move(near), std::move(far)};
  }
  FakeEnv env;
  std::string called;
};

TEST_F(LoopTest, TimersComeInTheOrderOfTheirTimesAndOnce) {
  Timer late(env.loop(), [&] { called += 'l'; });
  Timer soon(env.loop(), [&] { called += 's'; });
  Timer never(env.loop(), [&] { called += 'n'; });
  const Mono begin = env.now();
  late.set(begin + milliseconds(20));
  soon.set(begin + milliseconds(10));
  never.set(begin + milliseconds(5));
  never.set(std::nullopt);
  ASSERT_TRUE(env.loop().turn());
  EXPECT_EQ(called, "s");
  EXPECT_EQ(env.now(), begin + milliseconds(10));
  EXPECT_FALSE(soon.at());
  ASSERT_TRUE(env.loop().turn(begin + milliseconds(15)));
  EXPECT_EQ(called, "s");
  env.freeze(milliseconds(100));
  ASSERT_TRUE(env.loop().turn());
  EXPECT_EQ(called, "sl");
}

TEST_F(LoopTest, ATimerThatSetsItselfAgainAtOnceLeavesATurnToTheOthers) {
  Timer restless(env.loop(), [&] {
    called += 'r';
    restless.set(env.now());
  });
  auto [near, far] = connect();
  Poll poll(env.loop(), [&] {
    called += 'p';
    poll.stop();
  });
  restless.set(env.now());
  ASSERT_TRUE(env.loop().turn());
  EXPECT_EQ(called, "r");
  poll.watch(near.number());
  ASSERT_TRUE(env.write_some(far, "x"));
  ASSERT_TRUE(env.loop().turn());
  EXPECT_EQ(called, "rpr");
}

TEST_F(LoopTest, ACallbackMayEndAnyRegistrationItsOwnToo) {
  auto [near, far] = connect();
  ASSERT_TRUE(env.write_some(far, "x"));
  std::unique_ptr<Poll> first, second;
  auto timer = std::make_unique<Timer>(env.loop(), [&] { called += 't'; });
  first = std::make_unique<Poll>(env.loop(), [&] {
    called += '1';
    second.reset();
    timer.reset();
    first.reset();
  });
  second = std::make_unique<Poll>(env.loop(), [&] { called += '2'; });
  first->watch(near.number());
  second->watch(near.number());
  timer->set(env.now());
  ASSERT_TRUE(env.loop().turn());
  EXPECT_EQ(called, "1");
  Poll third(env.loop(), [&] { called += '3'; });
  third.watch(near.number());
  ASSERT_TRUE(env.loop().turn());
  EXPECT_EQ(called, "13");
}

TEST_F(LoopTest, WhatIsRegisteredOrWatchedAnewInATurnIsNotReadyInIt) {
  auto [near, far] = connect();
  ASSERT_TRUE(env.write_some(far, "x"));
  std::unique_ptr<Poll> added;
  Poll changed(env.loop(), [&] { called += 'c'; });
  Poll first(env.loop(), [&] {
    called += 'f';
    first.stop();
    added = std::make_unique<Poll>(env.loop(), [&] { called += 'a'; });
    added->watch(near.number());
    changed.watch(near.number());
  });
  first.watch(near.number());
  ASSERT_TRUE(env.loop().turn());
  EXPECT_EQ(called, "f");
  ASSERT_TRUE(env.loop().turn());
  EXPECT_EQ(called, "fca");
}

TEST_F(LoopTest, WhatIsWithdrawnIsForgottenThoughTheWaitFails) {
  std::make_unique<Poll>(env.loop(), [] {}).reset();
  env.fault = [](std::string_view call) {
    return call == "wait" ? std::optional(Error{ErrorKind::io, "no"}) : std::nullopt;
  };
  EXPECT_FALSE(env.loop().turn());
  EXPECT_TRUE(env.loop().watches().empty());
}

TEST_F(LoopTest, AStopThatCameWithinACallbackIsHeardAtOnce) {
  StopSignal stops(env.loop(), [&] { called += 's'; });
  Timer timer(env.loop(), [&] {
    env.stops = 1;
    ASSERT_TRUE(env.wait({}, env.now()));  // nothing wakes anybody for it any more
  });
  timer.set(env.now());
  ASSERT_TRUE(env.loop().turn());
  const Mono begin = env.now();
  ASSERT_TRUE(env.loop().turn(begin + milliseconds(200)));
  EXPECT_EQ(called, "s");
  EXPECT_EQ(env.now(), begin);
}

/// A process that answers each byte with another after a while.
struct Echo {
  Echo(FakeEnv& first, FakeEnv::On machine) : env(first, machine, {2000, 1}) {}
  void serve(const std::string& path) {
    listener = *env.listen_local(path);
    accepts.watch(listener.number());
  }
  FakeEnv env;
  Fd listener, connection;
  Poll accepts{env.loop(), [this] {
                 connection = **env.accept_local(listener);
                 reads.watch(connection.number());
               }};
  Poll reads{env.loop(), [this] {
               char byte = 0;
               if (**env.read_some(connection, {&byte, 1}) == 0) return reads.stop();
               answers.set(env.now() + milliseconds(50));
             }};
  Timer answers{env.loop(), [this] { EXPECT_TRUE(env.write_some(connection, "y")); }};
};

TEST_F(LoopTest, FurtherProcessesGoOnWhileTheFirstWaits) {
  Echo echo(env, FakeEnv::On::the_same_machine);
  echo.serve("/echo");
  Fd fd = *env.connect_local("/echo");
  Poll poll(env.loop(), [&] { called += 'p'; });
  poll.watch(fd.number());
  ASSERT_TRUE(env.write_some(fd, "x"));
  const Mono begin = env.now();
  ASSERT_TRUE(env.loop().turn(begin + milliseconds(200)));
  EXPECT_EQ(called, "p");
  EXPECT_EQ(env.now(), begin + milliseconds(50));
}

TEST_F(LoopTest, AFrozenProcessDoesNothingAndGoesOnLater) {
  Echo echo(env, FakeEnv::On::the_same_machine);
  echo.serve("/echo");
  Fd fd = *env.connect_local("/echo");
  ASSERT_TRUE(env.write_some(fd, "x"));
  Poll poll(env.loop(), [&] { called += 'p'; });
  poll.watch(fd.number());
  echo.env.frozen = true;
  ASSERT_TRUE(env.loop().turn(env.now() + milliseconds(200)));
  EXPECT_EQ(called, "");
  echo.env.frozen = false;
  ASSERT_TRUE(env.loop().turn(env.now() + milliseconds(200)));
  EXPECT_EQ(called, "p");
}

TEST_F(LoopTest, AnotherMachineHasFilesOfItsOwn) {
  Echo there(env, FakeEnv::On::another_machine), here(env, FakeEnv::On::the_same_machine);
  env.put("/file", "text");
  EXPECT_TRUE(here.env.read_file("/file", 100));
  EXPECT_FALSE(there.env.read_file("/file", 100));
}

}  // namespace
}  // namespace berth::os
