// A runner in the background, in the fake world.
#include "berth/engine/runs/detach.h"

#include <gtest/gtest.h>

#include <array>

#include "berth/testing/fake_env.h"

namespace berth::engine {
namespace {

class StartBerth : public ::testing::Test {
 protected:
  StartBerth() {
    env_.put("/opt/berth", "");
    env_.put("/state/log", "before\n");
    env_.variables = {{"HOME", "/home/a"}, {"BERTH_DB", "/elsewhere"}};
    env_.program = [this](const os::SpawnSpec& spec) {
      spec_ = spec;
      return os::FakeProgram{.out = "started\n", .err = "then failed\n", .exit_code = 1};
    };
    context_.env = &env_;
    context_.program = "/opt/berth";
    context_.state_directory = "/state";
  }
  Result<os::Fd> start() { return start_berth(context_, {"resume", "digits-1"}, "/state/log"); }

  os::FakeEnv env_;
  run::Context context_;
  os::SpawnSpec spec_;
};

TEST_F(StartBerth, StartsADetachedProcessThatAppendsToTheLog) {
  const auto exited = start();
  ASSERT_TRUE(exited) << exited.error().message;
  EXPECT_TRUE(spec_.is_detached);
  EXPECT_EQ(spec_.program, "/opt/berth");
  EXPECT_EQ(spec_.argv, (std::vector<std::string>{"berth", "resume", "digits-1"}));
  const std::vector<std::pair<std::string, std::string>> environment{{"BERTH_DB", "/state"},
                                                                     {"HOME", "/home/a"}};
  EXPECT_EQ(spec_.environment, environment) << "the state directory is that of the context";
  std::array watches{os::Watch{.fd = exited->number()}};
  ASSERT_TRUE(env_.wait(watches, env_.now() + std::chrono::seconds(1)));
  EXPECT_TRUE(watches[0].ready);
  EXPECT_EQ(*env_.find("/state/log"), "before\nstarted\nthen failed\n");
}

TEST_F(StartBerth, FailsIfNoProcessCanBeStarted) {
  env_.fault = [](std::string_view call) {
    return call == "spawn" ? std::optional(Error{ErrorKind::full, "fork: no memory"})
                           : std::nullopt;
  };
  EXPECT_EQ(start().error().kind, ErrorKind::full);
  context_.program = "/opt/none";
  EXPECT_EQ(start().error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace berth::engine
