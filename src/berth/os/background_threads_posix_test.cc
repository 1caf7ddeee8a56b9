// A Work runs on another thread, and its Then on this one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "berth/os/background_threads.h"
#include "berth/testing/posix.h"

namespace berth::os {
namespace {

class BackgroundThreadsPosixTest : public PosixTest {
 protected:
  void turn_until_done() {
    while (background_->busy()) {
      std::array<Watch, 1> watches{Watch{background_->ready()}};
      ASSERT_TRUE(env_->wait(watches, std::nullopt));
      ASSERT_TRUE(watches[0].ready);
      background_->turn();
    }
  }
  std::unique_ptr<BackgroundThreads> background_ = env_->background_threads();
};

TEST_F(BackgroundThreadsPosixTest, WorksThereAndTellsHereInTurn) {
  EXPECT_FALSE(background_->busy());
  EXPECT_EQ(background_->ready(), -1);
  const auto here = std::this_thread::get_id();
  std::vector<int> told;
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(background_->start([&, i](Env& there) -> BackgroundThreads::Then {
      EXPECT_NE(std::this_thread::get_id(), here);
      EXPECT_NE(&there, env_.get());
      EXPECT_TRUE(there.replace_file(path(std::to_string(i)), "x", 0600));
      return [&, i] {
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_TRUE(env_->status(path(std::to_string(i))));
        told.push_back(i);
      };
    }));
  turn_until_done();
  ASSERT_EQ(told.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(told));
}

TEST_F(BackgroundThreadsPosixTest, APieceThatHangsCostsAThreadAndNoMore) {
  constexpr std::size_t kThreads = 3;
  background_ = env_->background_threads(kThreads);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  bool hung_is_told = false;
  std::set<std::thread::id> threads;
  int told = 0;
  ASSERT_TRUE(background_->start([&, fd = pipe[0]](Env&) -> BackgroundThreads::Then {
    char byte = 0;
    while (::read(fd, &byte, 1) > 0) continue;
    return [&] { hung_is_told = true; };
  }));
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(background_->start([&](Env&) -> BackgroundThreads::Then {
      return [&, by = std::this_thread::get_id()] {
        threads.insert(by);
        ++told;
      };
    }));
  while (told < 100) {
    std::array<Watch, 1> watches{Watch{background_->ready()}};
    ASSERT_TRUE(env_->wait(watches, std::nullopt));
    background_->turn();
  }
  EXPECT_LT(threads.size(), kThreads);
  EXPECT_FALSE(hung_is_told);
  EXPECT_TRUE(background_->busy());
  ::close(pipe[1]);
  turn_until_done();
  EXPECT_TRUE(hung_is_told);
  ::close(pipe[0]);
}

TEST_F(BackgroundThreadsPosixTest, WhatIsToldMayStartMore) {
  int rounds = 0;
  std::function<BackgroundThreads::Work()> next = [&]() -> BackgroundThreads::Work {
    return [&](Env&) -> BackgroundThreads::Then {
      return [&] {
        const auto started = ++rounds < 5 ? background_->start(next()) : Status();
        EXPECT_TRUE(started);
      };
    };
  };
  ASSERT_TRUE(background_->start(next()));
  turn_until_done();
  EXPECT_EQ(rounds, 5);
}

TEST_F(BackgroundThreadsPosixTest, GoingItBreaksOffWhatIsUnderWayAndDropsTheRest) {
  std::atomic<bool> began = false, gave_up = false, second = false;
  bool told = false;
  ASSERT_TRUE(background_->start([&](Env& there) -> BackgroundThreads::Then {
    began = true;
    while (there.stop_signals() < 2) std::this_thread::yield();
    gave_up = true;
    return [&] { told = true; };
  }));
  ASSERT_TRUE(background_->start([&](Env&) -> BackgroundThreads::Then {
    second = true;
    return [] {};
  }));
  ASSERT_TRUE(comes_true([&] { return began.load(); }));
  background_.reset();
  EXPECT_TRUE(gave_up);
  EXPECT_FALSE(second);
  EXPECT_FALSE(told);
  EXPECT_LT(env_->stop_signals(), 2);
}

TEST_F(BackgroundThreadsPosixTest, WhatWasOpenedThereAndNotToldIsClosedInTime) {
  const std::string lock = path("lock");
  ASSERT_TRUE(background_->start([&](Env& there) -> BackgroundThreads::Then {
    auto held = there.lock(lock, false);
    EXPECT_TRUE(held);
    return [held = std::move(held)] {};
  }));
  std::array<Watch, 1> watches{Watch{background_->ready()}};
  ASSERT_TRUE(env_->wait(watches, std::nullopt));
  EXPECT_FALSE(env_->lock(lock, false));
  background_.reset();
  EXPECT_TRUE(env_->lock(lock, false));
}

TEST_F(BackgroundThreadsPosixTest, GoingItLeavesBehindWhatDoesNotAnswer) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const auto began = std::make_shared<std::atomic<bool>>(false);
  ASSERT_TRUE(background_->start([began, fd = pipe[0]](Env&) -> BackgroundThreads::Then {
    *began = true;
    char byte = 0;
    while (::read(fd, &byte, 1) > 0) continue;
    *began = false;
    return [] {};
  }));
  ASSERT_TRUE(comes_true([&] { return began->load(); }));
  background_.reset();
  EXPECT_TRUE(*began) << "it has not ended, and nobody waited for it";
  ::close(pipe[1]);
  EXPECT_TRUE(comes_true([&] { return !began->load(); }));
}

}  // namespace
}  // namespace berth::os
