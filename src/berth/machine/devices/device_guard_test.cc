#include "berth/machine/devices/device_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "berth/testing/devices.h"
#include "berth/testing/fake_env.h"
#include "paths.h"

namespace berth::machine {
namespace {

constexpr std::int64_t kGiB = 1LL << 30;

TEST(DeviceFiguresTest, AreReadOfCardsAndInstances) {
  FakeNvml nvml;
  nvml.cards.resize(3);
  nvml.cards[0].uuid = "GPU-a";
  nvml.cards[0].processes = {{10, kGiB}, {11, 0}};
  nvml.cards[1].mig = true;
  nvml.cards[1].instances = {{.uuid = "MIG-b", .model = "", .processes = {{12, 5}}}};
  nvml.cards[2].uuid = "GPU-c";
  nvml.trouble = [](std::string_view call, std::size_t card) -> std::optional<Error> {
    if (call == "processes" && card == 2) return Error{ErrorKind::denied, "not yours"};
    return std::nullopt;
  };
  const auto figures = read_figures(nvml);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->figures,
            (std::vector<DeviceFigure>{{"GPU-a", 10, kGiB}, {"GPU-a", 11, 0}, {"MIG-b", 12, 5}}));
  EXPECT_EQ(figures->untold,
            (std::vector<std::pair<std::string, std::string>>{{"GPU-c", "not yours"}}));
  EXPECT_EQ(*figures_of_json(to_json(*figures)), *figures);
  nvml.trouble = [](auto, auto) { return Error{ErrorKind::io, "gone"}; };
  EXPECT_FALSE(read_figures(nvml));
  for (const auto* wrong : {"", "{}", "[]", R"({"figures":[{}],"untold":[],"because":""})"})
    EXPECT_FALSE(figures_of_json(wrong)) << wrong;
}

/// What the other end wrote until its second line.
std::vector<DeviceFigures> written(const std::string& library) {
  os::FakeEnv env;
  const auto out = env.open_append("/out", 0600);
  int lines = 0;
  env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "write_all" && ++lines > 2) return Error{ErrorKind::io, "broken pipe"};
    return std::nullopt;
  };
  EXPECT_FALSE(watch_figures(env, library, std::chrono::seconds(1), *out));
  env.fault = {};
  std::vector<DeviceFigures> all;
  const auto text = env.read_file("/out", 1 << 20);
  for (std::size_t at = 0; text && at < text->size();) {
    const auto end = text->find('\n', at);
    const auto figures = figures_of_json(text->substr(at, end - at));
    EXPECT_TRUE(figures);
    if (figures) all.push_back(*figures);
    at = end + 1;
  }
  return all;
}

TEST(DeviceFiguresTest, AreToldOfALibraryAndWhyNot) {
  const auto env = os::posix_env();
  const std::string file =
      fmt::format("{}/berth-figures-{}", ::testing::TempDir(), env->self().pid);
  ASSERT_TRUE(env->replace_file(file, "0 7 1000\n1 8 -\n3 - -\n", 0600));
  setenv("BERTH_FAKE_NVML_PROCESSES", file.c_str(), 1);
  const auto told = written(tests::fake_nvml_path("whole"));
  unsetenv("BERTH_FAKE_NVML_PROCESSES");
  (void)env->remove_file(file);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1].figures,
            (std::vector<DeviceFigure>{{"GPU-00000000", 7, 1000}, {"GPU-00000001", 8, 0}}));
  ASSERT_EQ(told[1].untold.size(), 1U);
  EXPECT_EQ(told[1].untold[0].first, "MIG-00000003");
  EXPECT_EQ(written(tests::fake_nvml_path("old")).at(0).untold.size(), 3U);
  EXPECT_NE(written("/no/such/library.so").at(0).because, "");
}

std::string with_nuls(std::string text) {
  std::ranges::replace(text, '|', '\0');
  return text;
}

class DeviceGuardTest : public ::testing::Test {
 protected:
  DeviceGuardTest() {
    env.program = [this](const os::SpawnSpec&) {
      ++started;
      return os::FakeProgram{.duration = std::chrono::seconds(1), .out = to_json(figures) + "\n"};
    };
  }
  /// One with 10 GiB of GPU-a, whose processes are told by "/proc".
  GuardedTask task(std::int64_t id, pid_t leader) {
    return {.id = id,
            .leader = leader,
            .mark = fmt::format("BERTH_TASK=d-1/{}", id),
            .shares = {{.uuid = "GPU-a", .memory = 10 * kGiB, .whole = false}}};
  }
  void process(pid_t pid, pid_t parent, pid_t group, pid_t session) {
    EXPECT_TRUE(env.make_directory(fmt::format("/proc/{}", pid), 0755));
    env.put(fmt::format("/proc/{}/stat", pid),
            fmt::format("{} (a) b) R {} {} {} 0 -1\n", pid, parent, group, session));
  }
  /// All that is reported in so many seconds.
  GuardReport wait(int seconds) {
    reported = {};
    const Mono until = env.now() + std::chrono::seconds(seconds);
    while (env.now() < until) EXPECT_TRUE(env.loop().turn(until));
    return reported;
  }
  os::FakeEnv env;
  DeviceFigures figures;
  int started = 0;
  GuardReport reported;
  DeviceGuard guard{
      env,
      {.argv = {"watch"}, .environment = {}, .directory = "/", .cores = {}, .join_files = {}},
      [this](const GuardReport& report) {
        std::ranges::copy(report.over, std::back_inserter(reported.over));
        std::ranges::copy(report.advisory, std::back_inserter(reported.advisory));
      }};
};

TEST_F(DeviceGuardTest, OfATaskAreItsDescendantsItsGroupItsSessionAndWhoHasItsVariable) {
  process(100, 1, 100, 1);    // the leader
  process(101, 100, 101, 1);  // a child that leads a group of its own
  process(102, 101, 101, 1);  // and its child
  process(103, 1, 100, 1);    // left alone, in the group
  process(104, 1, 104, 100);  // in the session
  process(105, 1, 105, 105);  // left all of them
  env.put("/proc/105/environ", with_nuls("A=1|BERTH_TASK=d-1/1|B=2|"));
  process(106, 1, 106, 106);  // of nobody
  env.put("/proc/106/environ", with_nuls("BERTH_TASK=d-1/11|XBERTH_TASK=d-1/1|"));
  for (pid_t pid = 100; pid <= 106; ++pid) figures.figures.push_back({"GPU-a", pid, 2 * kGiB});
  figures.figures.push_back({"GPU-b", 100, 70 * kGiB});
  guard.add(task(1, 100));
  const GuardReport report = wait(2);
  ASSERT_EQ(report.over.size(), 1U);
  EXPECT_EQ(report.over[0].has, 12 * kGiB);
  EXPECT_EQ(report.over[0].share, 10 * kGiB);
  EXPECT_EQ(report.over[0].uuid, "GPU-a");
  EXPECT_TRUE(report.over[0].certain);
  EXPECT_TRUE(report.advisory.empty());
}

TEST_F(DeviceGuardTest, EachTaskIsComparedWithItsOwnShare) {
  process(100, 1, 100, 1);
  process(200, 1, 200, 1);
  figures.figures = {{"GPU-a", 100, 10 * kGiB}, {"GPU-a", 200, 10 * kGiB + 1}};
  guard.add(task(1, 100));
  guard.add(task(2, 200));
  const GuardReport report = wait(2);
  ASSERT_EQ(report.over.size(), 1U) << "exactly its share is its share";
  EXPECT_EQ(report.over[0].task, 2);
}

TEST_F(DeviceGuardTest, WhatIsNotToldIsAdvisoryOnce) {
  process(100, 1, 100, 1);
  guard.add(task(1, 100));
  figures.because = "Driver Not Loaded";
  auto report = wait(35);  // the program ends and is started again
  EXPECT_EQ(started, 2);
  ASSERT_EQ(report.advisory.size(), 1U);
  EXPECT_EQ(report.advisory[0].second, "Driver Not Loaded");
  figures = {.figures = {}, .untold = {{"GPU-b", "x"}, {"GPU-a", "no"}}, .because = ""};
  report = wait(31);
  ASSERT_EQ(report.advisory.size(), 1U);
  EXPECT_EQ(report.advisory[0].second, "GPU-a: no");
  figures = {.figures = {{"GPU-a", 100, 0}}, .untold = {}, .because = ""};
  report = wait(31);
  ASSERT_EQ(report.advisory.size(), 1U);
  EXPECT_NE(report.advisory[0].second.find("does not report the memory of a process"),
            std::string::npos);
  EXPECT_TRUE(report.over.empty());
}

TEST_F(DeviceGuardTest, BesideProcessesThatAreNotToBeSeenNothingIsCertain) {
  process(100, 1, 100, 1);
  figures.figures = {{"GPU-a", 100, 11 * kGiB}, {"GPU-a", 4242, kGiB}};
  guard.add(task(1, 100));
  auto report = wait(2);
  ASSERT_EQ(report.over.size(), 1U);
  EXPECT_FALSE(report.over[0].certain);
  EXPECT_TRUE(report.advisory.empty()) << "it may just have ended";
  report = wait(70);
  ASSERT_EQ(report.advisory.size(), 1U);
  EXPECT_NE(report.advisory[0].second.find("cannot be seen"), std::string::npos);
}

TEST_F(DeviceGuardTest, ADriverThatDoesNotAnswerIsAdvisory) {
  env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::hours(1)};
  };
  guard.add(task(1, 100));
  EXPECT_TRUE(wait(25).advisory.empty());
  const auto report = wait(10);
  ASSERT_EQ(report.advisory.size(), 1U);
  EXPECT_EQ(report.advisory[0].second, "the driver does not answer");
}

TEST_F(DeviceGuardTest, NobodyAsksTheDriverAWhileAfterTheLastTask) {
  EXPECT_FALSE(guard.asks());
  env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::hours(1)};
  };
  guard.add(task(1, 100));
  (void)wait(1);
  EXPECT_EQ(env.processes_alive(), 1U);
  guard.remove(1);
  (void)wait(5);
  EXPECT_EQ(env.processes_alive(), 1U);
  guard.add(task(2, 200));
  (void)wait(20);
  EXPECT_EQ(env.processes_alive(), 1U) << "the next one was in time";
  guard.remove(2);
  (void)wait(11);
  EXPECT_EQ(env.processes_alive(), 0U);
  EXPECT_EQ(env.descriptors(), 0U);
  EXPECT_FALSE(guard.asks());
}

TEST_F(DeviceGuardTest, OnlyPartsWithMemoryAreGuarded) {
  const auto parts = parts_of({{.uuid = "whole", .memory = 5},
                               {.uuid = "slots", .slots = 3, .whole = false},
                               {.uuid = "part", .memory = 5, .whole = false}});
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].uuid, "part");
}

}  // namespace
}  // namespace berth::machine
