#include "berth/os/child_process.h"

#include <csignal>

#include "berth/testing/posix.h"

namespace berth::os {
namespace {

using Stream = ChildProcess::Stream;

class ChildProcessTest : public PosixTest {
 protected:
  Result<ExitStatus> run_all(const SpawnSpec& spec, std::optional<Mono> until = std::nullopt) {
    return run_child(
        *env_, spec,
        [&](Stream stream, std::string_view text) {
          (stream == Stream::out ? out_ : err_) += text;
        },
        until);
  }
  std::string out_, err_;
};

TEST_F(ChildProcessTest, ReportsAllOutputAndThenTheEnd) {
  const auto status = run_all(shell("seq 100000; echo bad >&2; exit 3"));
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->code, 3);
  EXPECT_EQ(out_.size(), 588895U);
  EXPECT_EQ(err_, "bad\n");
}

TEST_F(ChildProcessTest, DoesNotWaitForAGrandchildThatKeepsThePipe) {
  const auto status = run_all(shell("echo done; sleep 100 & exit 0"));
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(out_, "done\n");
}

TEST_F(ChildProcessTest, AProcessThatCannotBeStartedEndsWithTheErrorInTheNextTurn) {
  std::optional<Result<ExitStatus>> end;
  const ChildProcess child(*env_, env_->loop(), command({"none"}), {},
                           [&](const auto& status) { end = status; });
  EXPECT_FALSE(end);
  ASSERT_TRUE(env_->loop().turn());
  ASSERT_TRUE(end);
  EXPECT_EQ(end->error().kind, ErrorKind::not_found);
}

TEST_F(ChildProcessTest, IsKilledAtItsDeadline) {
  const auto status =
      run_all(shell("echo $$; exec sleep 100"), env_->now() + std::chrono::milliseconds(300));
  EXPECT_EQ(status.error().kind, ErrorKind::busy);
  const auto pid = parse_integer(trim(out_));
  ASSERT_TRUE(pid);
  EXPECT_FALSE(env_->group_alive(static_cast<pid_t>(*pid)));
}

TEST_F(ChildProcessTest, TheEndMayDestroyIt) {
  std::unique_ptr<ChildProcess> child;
  bool has_ended = false;
  child = std::make_unique<ChildProcess>(*env_, env_->loop(), shell("exit 0"),
                                         ChildProcess::Print(), [&](const auto& status) {
                                           EXPECT_TRUE(status);
                                           child.reset();
                                           has_ended = true;
                                         });
  while (!has_ended) ASSERT_TRUE(env_->loop().turn(env_->now() + std::chrono::seconds(20)));
}

TEST_F(ChildProcessTest, TheDestructorSendsSigtermFirstIfItHasAGracePeriod) {
  {
    const auto spec = shell("trap 'echo ended > ended; exit' TERM; echo ready; sleep 100 & wait");
    std::string out;
    const ChildProcess child(
        *env_, env_->loop(), spec, [&](Stream, std::string_view text) { out += text; },
        [](const auto&) {}, std::chrono::seconds(10));
    while (out.empty()) ASSERT_TRUE(env_->loop().turn(env_->now() + std::chrono::seconds(20)));
  }
  EXPECT_EQ(*env_->read_file(path("ended"), 64), "ended\n");
}

}  // namespace
}  // namespace berth::os
