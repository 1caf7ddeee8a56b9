// Which processes are leftovers of tasks, with real processes.
#include "berth/exec/leftovers.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/testing/posix.h"

namespace berth::exec {
namespace {

class LeftoversTest : public os::PosixTest {
 protected:
  ~LeftoversTest() override {
    for (const auto& child : children_) {
      (void)env_->signal_group(child.pid, SIGKILL);
      while (!env_->reap(child).value_or(os::ExitStatus{})) (void)env_->wait({}, env_->now());
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

  const os::Child& start(std::vector<std::pair<std::string, std::string>> variables,
                         const std::string& script = "exec sleep 100") {
    variables.emplace_back("PATH", "/usr/bin:/bin");
    auto child = env_->spawn({.argv = {"sh", "-c", script},
                              .environment = std::move(variables),
                              .directory = "/",
                              .cores = {},
                              .join_files = {}});
    EXPECT_TRUE(child);
    return children_.emplace_back(*std::move(child));
  }
  bool ends(const os::Child& child, Duration within = std::chrono::seconds(20)) {
    std::array<os::Watch, 1> watches{os::Watch{.fd = child.exited.number()}};
    (void)env_->wait(watches, env_->now() + within);
    return watches[0].ready;
  }
  bool stays(const os::Child& child) { return !ends(child, std::chrono::milliseconds(200)); }
  std::string mark_of_worker(pid_t pid, std::int64_t started_at) const {
    return std::to_string(pid) + "." + std::to_string(started_at) + ".7 x";
  }

  std::vector<os::Child> children_;
};

TEST_F(LeftoversTest, ProcessesOfARunEndAndAPersonsShellStays) {
  children_.reserve(4);
  const std::string directory = path("run");
  const auto& task = start({{"BERTH_RUN_DIR", directory}, {"BERTH_TOKEN", "7"}});
  const auto& kept = start({{"BERTH_RUN_DIR", directory}, {"BERTH_TOKEN", "8"}});
  const auto& shell = start({{"BERTH_RUN_DIR", directory}, {"BERTH_SHELL", "a-1/1"}});
  const auto& other = start({{"BERTH_RUN_DIR", directory + "2"}, {"BERTH_TOKEN", "7"}});
  const auto ended = end_marked(*env_, "BERTH_RUN_DIR=" + directory,
                                [](std::optional<Token> token) { return token == Token{7}; });
  EXPECT_EQ(ended.value_or(-1), 1);
  EXPECT_TRUE(ends(task));
  for (const auto* child : {&kept, &shell, &other}) EXPECT_TRUE(stays(*child));
}

TEST_F(LeftoversTest, DescendantsWithoutAMarkEndAndThoseOfAnotherRunStay) {
  const std::string directory = path("run");
  const auto witness = path("pids");
  const auto& task =
      start({{"BERTH_RUN_DIR", directory}}, "env -i /bin/sleep 100 & echo $! >>" + witness +
                                                "; BERTH_RUN_DIR=/other sleep 100 & echo $! >>" +
                                                witness + "; wait");
  std::string pids;
  while (std::ranges::count(pids, '\n') < 2) pids = env_->read_file(witness, 100).value_or("");
  for (const auto pid : words(pids))
    while (env_->read_file(fmt::format("/proc/{}/comm", pid), 100).value_or("") != "sleep\n") {
    }
  EXPECT_EQ(end_marked(*env_, "BERTH_RUN_DIR=" + directory, [](auto) { return true; }).value_or(-1),
            2);
  EXPECT_TRUE(ends(task));
  EXPECT_EQ(::kill(std::stoi(pids.substr(pids.find('\n'))), 0), 0);
}

TEST_F(LeftoversTest, WhatAPersonStartsFromAShellInATaskStaysWhateverItsEnvironmentIs) {
  const std::string directory = path("run");
  const auto witness = path("pids");
  start({{"BERTH_RUN_DIR", directory}, {"BERTH_SHELL", "a-1/1"}},
        "env -u BERTH_SHELL sh -c 'sleep 100 & echo $! >>" + witness + "; wait' & wait");
  std::string pids;
  while (std::ranges::count(pids, '\n') < 1) pids = env_->read_file(witness, 100).value_or("");
  EXPECT_EQ(end_marked(*env_, "BERTH_RUN_DIR=" + directory, [](auto) { return true; }).value_or(-1),
            0);
  EXPECT_EQ(::kill(std::stoi(pids), SIGKILL), 0);
}

TEST_F(LeftoversTest, ProcessesOfADeadWorkerEndAndThoseOfALivingOneStay) {
  children_.reserve(2);
  constexpr pid_t kNoProcess = 4'194'305;  // above the highest pid
  const auto self = env_->self();
  const auto& left = start({{"BERTH_ALLOC", mark_of_worker(kNoProcess, 1)}});
  const auto& kept = start({{"BERTH_ALLOC", mark_of_worker(self.pid, self.started_at)}});
  EXPECT_GE(end_abandoned(*env_), 1);
  EXPECT_TRUE(ends(left));
  EXPECT_TRUE(stays(kept));
}

TEST_F(LeftoversTest, AnOrphanOfAnEndedAttemptEndsAndAnotherStays) {
  ASSERT_TRUE(env_->adopt_orphans());
  const auto self = env_->self();
  const auto mark = mark_of_worker(self.pid, self.started_at);
  const auto& task = start({{"BERTH_ALLOC", mark}}, "setsid sleep 100 & exit 0");
  ASSERT_TRUE(ends(task));
  ASSERT_EQ(env_->adopted().size(), 1U);
  const std::array<Token, 1> another{Token{8}}, ended{Token{7}};
  EXPECT_TRUE(end_adopted(*env_, another, {}, Unmarked::kept).empty());
  EXPECT_EQ(env_->adopted().size(), 1U);
  while (!end_adopted(*env_, ended, {}, Unmarked::kept).empty())
    (void)env_->wait({}, env_->now() + std::chrono::milliseconds(1));
  EXPECT_TRUE(env_->adopted().empty());
}

TEST_F(LeftoversTest, AnOrphanThatChangesItsProgramAgainAndAgainEnds) {
  ASSERT_TRUE(env_->adopt_orphans());
  const auto self = env_->self();
  const auto mark = mark_of_worker(self.pid, self.started_at);
  const std::array<Token, 1> ended{Token{7}};
  const auto script = path("again");
  put("again", "exec /bin/sh " + script);
  for (int round = 0; round < 20; ++round) {
    const auto& task = start({{"BERTH_ALLOC", mark}}, "setsid /bin/sh " + script + " & exit 0");
    ASSERT_TRUE(ends(task));
    ASSERT_EQ(env_->adopted().size(), 1U);
    while (!end_adopted(*env_, ended, {}, Unmarked::kept).empty())
      (void)env_->wait({}, env_->now() + std::chrono::milliseconds(1));
    ASSERT_TRUE(env_->adopted().empty()) << "after " << round;
    ASSERT_TRUE(env_->reap(task).value_or(std::nullopt));
    children_.pop_back();
  }
}

TEST_F(LeftoversTest, APidThatIsUsedAgainIsNotSignalled) {
  const auto& child = start({});
  const auto sent = env_->signal_process({child.pid, 1}, SIGKILL);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, ErrorKind::not_found);
  EXPECT_TRUE(stays(child));
}

}  // namespace
}  // namespace berth::exec
