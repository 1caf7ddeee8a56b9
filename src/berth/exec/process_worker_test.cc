// The worker on the real system: real processes, signals and, where they can be made, control
// groups.
#include "berth/exec/process_worker.h"

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>
#include <thread>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/command.h"
#include "berth/os/loop.h"
#include "berth/testing/fake_env.h"

namespace berth::exec {
namespace {

constexpr auto kLongEnough = std::chrono::seconds(20);

class ProcessWorkerTest : public ::testing::Test {
 protected:
  ProcessWorkerTest()
      : env_(os::posix_env()),
        machine_(total()),
        groups_(*env_),
        worker_(std::in_place, *env_, machine_, groups_) {}
  ~ProcessWorkerTest() override {
    if (!file_.empty()) (void)env_->remove_file(file_);
  }

  static machine::Block total() {
    machine::Block block;
    block.resources.set(Known::cpu, 2000);
    block.resources.set(Known::mem, 1LL << 33);
    const auto cores = os::posix_env()->affinity();
    for (const int core : cores) block.cores.push_back({core, 0, 1000});
    block.resources.set(Known::cpu, static_cast<std::int64_t>(cores.size()) * 1000);
    return block;
  }

  Launch shell(const std::string& script) {
    Launch launch{.task = {1},
                  .token = {++token_},
                  .request = {},
                  .argv = {"/bin/sh", "-c", script},
                  .environment = env_->environment(),
                  .directory = "/tmp",
                  .grace = std::chrono::milliseconds(200)};
    launch.request.resources.set(Known::cpu, 1000);
    return launch;
  }

  /// It takes the room of the other when that has ended.
  Launch behind(const Launch& other, const std::string& script) {
    Launch launch = shell(script);
    launch.request = other.request;
    launch.behind = other.token;
    launch.waits_most = kLongEnough;
    return launch;
  }

  /// Runs until everything has ended, or until `enough` says so.
  void run(const std::function<bool()>& enough = [] { return false; }) {
    const Mono until = env_->now() + kLongEnough;
    while (!worker_->idle() && !enough()) {
      ASSERT_LT(env_->now(), until) << "it never ended";
      ASSERT_TRUE(env_->loop().turn(until));
      std::vector<FromWorker> messages;
      worker_->take_messages(messages);
      for (auto& message : messages) {
        if (auto* output = std::get_if<Output>(&message)) output_[output->stream] += output->bytes;
        if (auto* metric = std::get_if<Metric>(&message)) {
          metrics_[metric->name] = metric->value;
          if (metric->asked_to_end) late_metrics_.insert(metric->name);
        }
        if (auto* notice = std::get_if<Notice>(&message)) notices_.push_back(notice->text);
        if (auto* ended = std::get_if<Ended>(&message)) ended_.push_back(*ended);
      }
    }
  }

  /// Launches the script and waits until its process has exited, without a turn of the worker's
  /// loop.
  Token exit_unseen(const std::string& script, Duration timeout = {}) {
    file_ = fmt::format("{}/berth-pid-{}", ::testing::TempDir(), env_->self().pid);
    (void)env_->remove_file(file_);
    Launch launch = shell(fmt::format("echo $$ > {}; {}", file_, script));
    launch.timeout = timeout;
    worker_->send(launch);
    const auto exited = [&] {
      const auto pid = env_->read_file(file_, 4096);
      if (!pid || !pid->ends_with('\n')) return false;
      const auto stat = env_->read_file(fmt::format("/proc/{}/stat", trim(*pid)), 4096);
      return stat && stat->find(") Z") != std::string::npos;
    };
    const Mono until = env_->now() + kLongEnough;
    while (!exited() && env_->now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(exited());
    return launch.token;
  }

  /// A killed process takes a moment to go.
  bool goes(std::string_view pid) {
    const Mono until = env_->now() + kLongEnough;
    while (env_->now() < until) {
      const auto stat = env_->read_file(fmt::format("/proc/{}/stat", trim(pid)), 4096);
      if (!stat || stat->find(") Z") != std::string::npos) return true;
      (void)env_->loop().turn(env_->now() + std::chrono::milliseconds(2));
    }
    return false;
  }

  /// A worker whose driver tells what stands in a file of figures, before any task is launched.
  void use_fake_driver() {
    machine::Block block = total();
    block.devices = {{.uuid = "GPU-a", .memory = 20LL << 30, .slots = 13, .size = 13}};
    machine_.set_total(block);
    file_ = fmt::format("{}/berth-driver-{}", ::testing::TempDir(), env_->self().pid);
    have({});
    worker_.emplace(*env_, machine_, groups_, Environment{},
                    std::vector<std::string>{
                        "/bin/sh", "-c", fmt::format("while cat {}; do sleep 0.05; done", file_)});
  }
  void have(machine::DeviceFigures figures) {
    ASSERT_TRUE(env_->replace_file(file_, machine::to_json(figures) + "\n", 0600));
  }
  /// With 10 GiB of the card. It prints its number.
  Launch sharing(GpuMemOver over) {
    Launch launch = shell("echo $$; exec sleep 2");
    launch.request.resources.set(Known::gpu_mem, 10LL << 30);
    launch.gpu_mem_over = over;
    return launch;
  }

  std::unique_ptr<os::Env> env_;
  machine::Machine machine_;
  machine::Groups groups_;
  std::optional<ProcessWorker> worker_;
  std::string file_;
  std::vector<std::string> notices_;
  std::int64_t token_ = 0;
  std::map<Stream, std::string> output_;
  std::map<std::string, double> metrics_;
  std::set<std::string> late_metrics_;  // read after a Cancel
  std::vector<Ended> ended_;
};

TEST_F(ProcessWorkerTest, OutputMetricsAndExitCode) {
  worker_->send(shell("echo out; echo err >&2; echo '::berth loss=0.5'; exit 3"));
  run();
  EXPECT_EQ(output_[Stream::out], "out\n::berth loss=0.5\n");
  EXPECT_EQ(output_[Stream::err], "err\n");
  EXPECT_EQ(metrics_["loss"], 0.5);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(describe(ended_[0]), "exit 3");
  EXPECT_EQ(machine_.held(), Resources());
}

TEST_F(ProcessWorkerTest, SignalThatNobodyHereSent) {
  worker_->send(shell("kill -SEGV $$"));
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::signal);
  EXPECT_EQ(ended_.at(0).signal, SIGSEGV);
}

TEST_F(ProcessWorkerTest, AClosedPipeIsExplained) {
  worker_->send(shell("exit 141"));
  run();
  EXPECT_EQ(describe(ended_.at(0)), "exit 141");
  EXPECT_NE(ended_.at(0).detail.find("pipe whose reader had ended"), std::string::npos);
}

TEST_F(ProcessWorkerTest, WithoutBashATaskFailsForGoodAndSaysWhatToDo) {
  Launch launch = shell("");
  launch.argv = command_line({"a | b", {}}, [](auto) { return std::nullopt; });
  launch.environment = {{"PATH", "/nowhere"}};
  worker_->send(launch);
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::cannot_start);
  EXPECT_NE(ended_.at(0).detail.find("write shell: sh"), std::string::npos) << ended_.at(0).detail;
}

TEST_F(ProcessWorkerTest, TimeLimitEndsTheWholeGroup) {
  Launch launch =
      shell("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 100' & wait; sleep 100");
  launch.timeout = std::chrono::milliseconds(300);
  worker_->send(launch);
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::time_limit);
  EXPECT_NE(ended_.at(0).detail.find("ignored TERM"), std::string::npos);
  EXPECT_TRUE(goes(output_[Stream::out]));
}

TEST_F(ProcessWorkerTest, CancelIsStopped) {
  worker_->send(shell("echo up; sleep 100"));
  run([&] { return !output_[Stream::out].empty(); });
  worker_->send(Cancel{{token_}});
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::stopped);
}

TEST_F(ProcessWorkerTest, AProcessThatHadExitedBeforeItsCancelEndsWithItsOwnCodeAndReports) {
  worker_->send(Cancel{exit_unseen("echo ::berth acc=1; exit 3")});
  run();
  EXPECT_EQ(describe(ended_.at(0)), "exit 3");
  EXPECT_FALSE(ended_.at(0).asked_to_end);
  EXPECT_EQ(metrics_["acc"], 1);
}

TEST_F(ProcessWorkerTest, AProcessThatExitedWithinItsTimeEndsWithItsOwnCodeThoughItIsReadLate) {
  const Duration limit = std::chrono::milliseconds(50);
  exit_unseen("echo ::berth acc=1; exit 0", limit);
  std::this_thread::sleep_for(limit);
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::ok);
  EXPECT_EQ(metrics_["acc"], 1);
}

TEST_F(ProcessWorkerTest, WhatAKilledProcessLeftOfALineIsNoReport) {
  worker_->send(shell("echo ::berth acc=1; printf '::berth acc=40'; kill -9 $$"));
  run();
  EXPECT_EQ(metrics_["acc"], 1);
}

TEST_F(ProcessWorkerTest, WhatIsReportedAfterACancelIsMarked) {
  worker_->send(shell("trap 'echo ::berth acc=9; exit 0' TERM; echo up; sleep 100 & wait"));
  run([&] { return !output_[Stream::out].empty(); });
  worker_->send(Cancel{{token_}});
  run();
  EXPECT_TRUE(ended_.at(0).asked_to_end);
  EXPECT_EQ(ended_.at(0).cause, Cause::ok) << "it took its end well";
  EXPECT_TRUE(late_metrics_.contains("acc"));
}

TEST_F(ProcessWorkerTest, AGroupThatStaysBeyondItsGraceIsKilledInTimeAndWaitedForInPeace) {
  const Launch launch = shell("(trap '' TERM; echo ready; sleep 20) & wait");
  worker_->send(launch);
  run([&] { return !output_.empty(); });
  int turns = 0;
  const Mono begun = env_->now();
  worker_->send(Cancel{launch.token});
  run([&] {
    ++turns;
    return false;
  });
  EXPECT_EQ(ended_.at(0).cause, Cause::stopped);
  EXPECT_LT(turns, 30);
  EXPECT_GE(env_->now() - begun, launch.grace);
}

TEST_F(ProcessWorkerTest, BackgroundChildEndsWithItsTask) {
  worker_->send(shell("sleep 100 & echo $!"));
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::ok);
  EXPECT_TRUE(goes(output_[Stream::out]));
}

TEST_F(ProcessWorkerTest, ChildThatLeftTheGroupEndsWithItsTaskToo) {
  if (groups_.enforced().find("pids") == std::string::npos)
    GTEST_SKIP() << "no control group can be made here";
  worker_->send(shell("setsid sleep 100 & echo $!; sleep 0.2"));
  run();
  EXPECT_TRUE(goes(output_[Stream::out]));
}

/// Its groups can be made and limited, and take no process.
class GroupsThatTakeNobody final : public os::FakeEnv {
 public:
  GroupsThatTakeNobody() {
    put("/proc/self/cgroup", "2:memory:/\n");
    put("/proc/self/mountinfo", "31 20 0:31 / /cg rw - cgroup cgroup rw,memory\n");
    (void)FakeEnv::make_directory("/cg", 0755);
  }
  Status make_directory(const std::string& path, mode_t mode) override {
    BERTH_TRY(FakeEnv::make_directory(path, mode));
    for (const auto* name : {"/tasks", "/cgroup.procs", "/memory.limit_in_bytes"})
      put(path + name, "");
    return {};
  }
  Result<os::Child> spawn(const os::SpawnSpec& spec) override {
    ++tries;
    if (spec.join_files.empty()) return FakeEnv::spawn(spec);
    return fail(ErrorKind::io, "join its control group: Operation not supported");
  }
  int tries = 0;
};

TEST(ProcessWorkerGroups, AGroupThatTakesNoProcessMakesLimitsAdvice) {
  GroupsThatTakeNobody env;
  machine::Block block;
  block.resources.set(Known::mem, 1 << 30);
  machine::Machine machine(block);
  machine::Groups groups(env);
  ProcessWorker worker(env, machine, groups);
  Launch launch{
      .task = {1}, .token = {1}, .request = {}, .argv = {"x"}, .environment = {}, .directory = "/"};
  launch.request.resources.set(Known::mem, 1 << 20);
  const auto said = [&] {
    std::vector<FromWorker> messages;
    worker.send(launch);
    ++launch.token.value;
    worker.take_messages(messages);
    return messages;
  };
  EXPECT_EQ(std::get<Started>(said().at(0)).advisory,
            "mem: join its control group: Operation not supported");
  EXPECT_EQ(env.tries, 2);
  EXPECT_TRUE(std::holds_alternative<Started>(said().at(0)));
  EXPECT_EQ(env.tries, 3) << "no group is tried any more";
  launch.enforce = true;
  const auto refused = std::get<Ended>(said().at(0));
  EXPECT_EQ(refused.cause, Cause::cannot_start);
  EXPECT_NE(refused.detail.find("enforce: required"), std::string::npos) << refused.detail;
  EXPECT_EQ(env.tries, 3);
}

TEST_F(ProcessWorkerTest, OutOfMemoryIsToldApart) {
  if (groups_.enforced().find("memory") == std::string::npos)
    GTEST_SKIP() << "no memory group can be made here";
  Launch launch = shell("exec /usr/bin/python3 -c 'x = bytearray(300 << 20); print(len(x))'");
  launch.request.resources.set(Known::mem, 64 << 20);
  worker_->send(launch);
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::out_of_memory) << describe(ended_.at(0));
  ended_.clear();
  worker_->send(shell("exit 1"));  // the next task of the same group is not blamed for it
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::exit_code);
}

TEST_F(ProcessWorkerTest, LargeOutputComesWhole) {
  worker_->send(shell("head -c 30000000 /dev/zero; echo end"));
  run();
  EXPECT_EQ(output_[Stream::out].size(), 30000004U);
  EXPECT_TRUE(output_[Stream::out].ends_with("end\n"));
}

TEST_F(ProcessWorkerTest, CannotStartGivesEverythingBack) {
  Launch launch = shell("");
  launch.argv = {"/no/such/program"};
  worker_->send(launch);
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::cannot_start);
  EXPECT_EQ(machine_.held(), Resources());
}

TEST_F(ProcessWorkerTest, MoreThanTheMachineIsRefusedNotOverrun) {
  Launch launch = shell("exit 0");
  launch.request.resources.set(Known::cpu, 1'000'000);
  worker_->send(launch);
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::cannot_start);
  EXPECT_NE(ended_.at(0).detail.find("1000 cores requested"), std::string::npos)
      << ended_[0].detail;
}

TEST_F(ProcessWorkerTest, ATaskSeesItsDevicesAndAnotherSeesNone) {
  machine::Block block = total();
  block.devices = {{.uuid = "GPU-a", .slots = 13, .size = 13}};
  machine_.set_total(block);
  Launch with = shell("echo $CUDA_VISIBLE_DEVICES,$NVIDIA_VISIBLE_DEVICES");
  with.request.resources.set(Known::gpu, 1);
  with.environment.emplace_back("CUDA_VISIBLE_DEVICES", "0,1,2");
  worker_->send(with);
  run();
  EXPECT_EQ(output_[Stream::out], "GPU-a,GPU-a\n") << "the placement decides, not the file";
  output_.clear();
  worker_->send(shell("echo \"<$CUDA_VISIBLE_DEVICES>\""));
  run();
  EXPECT_EQ(output_[Stream::out], "<>\n");
}

TEST_F(ProcessWorkerTest, MoreOfADeviceThanItsShareIsWarnedOfOnce) {
  use_fake_driver();
  worker_->send(sharing(GpuMemOver::warn));
  run([&] { return !output_[Stream::out].empty(); });
  const auto pid = static_cast<pid_t>(*parse_integer(trim(output_[Stream::out])));
  have({{{"GPU-a", pid, 11LL << 30}}, {}, ""});
  run([&] { return !notices_.empty(); });
  have({{{"GPU-a", pid, 15LL << 30}}, {}, ""});
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::ok) << describe(ended_[0]);
  EXPECT_EQ(ended_[0].detail, "it had more GPU memory than its share: 15 GiB of 10 GiB on GPU-a");
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_EQ(notices_[0], "over its share of GPU memory: 11 GiB of 10 GiB on GPU-a");
}

TEST_F(ProcessWorkerTest, MoreOfADeviceThanItsShareEndsItWhereThatIsWanted) {
  use_fake_driver();
  worker_->send(sharing(GpuMemOver::kill));
  const std::int64_t over = token_;
  run([&] { return !output_[Stream::out].empty(); });
  const auto pid = static_cast<pid_t>(*parse_integer(trim(output_[Stream::out])));
  worker_->send(sharing(GpuMemOver::kill));
  have({{{"GPU-a", pid, 11LL << 30}}, {}, ""});
  run([&] { return !ended_.empty(); });
  have({});
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].token.value, over);
  EXPECT_EQ(describe(ended_[0]), "over its share of GPU memory");
  EXPECT_EQ(ended_[0].detail, "its processes had 11 GiB of 10 GiB on GPU-a");
  run();
  EXPECT_EQ(ended_.at(1).cause, Cause::ok) << "its neighbour has nothing to do with it";
  EXPECT_TRUE(notices_.empty());
}

TEST_F(ProcessWorkerTest, WhereTheDriverTellsNothingNobodyIsKilled) {
  use_fake_driver();
  worker_->send(sharing(GpuMemOver::kill));
  have({{}, {{"GPU-a", "it is a MIG instance"}}, ""});
  run();
  EXPECT_EQ(ended_.at(0).cause, Cause::ok);
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_EQ(notices_[0], "gpu_mem is advisory only: GPU-a: it is a MIG instance");
}

TEST_F(ProcessWorkerTest, OneBehindAnotherTakesItsRoomWhenThatHasEnded) {
  Launch whole = shell("echo first; sleep 0.2; echo over");
  whole.request.resources = machine_.total().resources;
  const Launch next = behind(whole, "echo second");
  const Launch last = behind(next, "echo third");
  Launch late = shell("true");
  late.behind = {99};  // of which nothing is known any more
  for (const auto& launch : {whole, next, last}) worker_->send(launch);
  run();
  ASSERT_EQ(ended_.size(), 3U);
  for (const auto& ended : ended_) EXPECT_EQ(ended.cause, Cause::ok) << ended.detail;
  EXPECT_EQ(output_[Stream::out], "first\nover\nsecond\nthird\n");
  worker_->send(late);
  run();
  EXPECT_EQ(ended_.back().cause, Cause::ok);
}

TEST_F(ProcessWorkerTest, OneThatIsCancelledWhileItWaitsLetsTheNextMoveUp) {
  const Launch first = shell("sleep 0.2; echo first");
  const Launch next = behind(first, "echo second");
  const Launch last = behind(next, "echo third");
  for (const auto& launch : {first, next, last}) worker_->send(launch);
  worker_->send(Cancel{next.token});
  run();
  ASSERT_EQ(ended_.size(), 3U);
  EXPECT_EQ(ended_[0].token, next.token);
  EXPECT_EQ(ended_[0].cause, Cause::stopped);
  EXPECT_EQ(output_[Stream::out], "first\nthird\n");
}

TEST_F(ProcessWorkerTest, OneThatWaitsForTooLongIsGivenBackAndKillingAllEndsIt) {
  const Launch first = shell("sleep 20");
  Launch next = shell("echo second");
  next.behind = first.token;
  next.waits_most = std::chrono::milliseconds(50);
  const Launch last = behind(next, "echo third");
  for (const auto& launch : {first, next, last}) worker_->send(launch);
  run([&] { return !ended_.empty(); });
  EXPECT_EQ(ended_.at(0).token, next.token);
  EXPECT_EQ(ended_.at(0).cause, Cause::given_back);
  worker_->send(Abandon{});
  run();
  ASSERT_EQ(ended_.size(), 3U);
  EXPECT_EQ(ended_[1].token, last.token);
  EXPECT_EQ(ended_[1].cause, Cause::stopped);
  EXPECT_EQ(output_[Stream::out], "");
}

TEST_F(ProcessWorkerTest, WhoNamesOneThatWasGivenBackStandsWhereThatStood) {
  const Launch first = shell("sleep 0.2; echo first");
  const Launch next = behind(first, "echo second");
  const Launch last = behind(next, "echo third");
  worker_->send(first);
  worker_->send(next);
  worker_->send(Cancel{next.token});
  worker_->send(last);  // by a runner that has not heard of it
  run();
  EXPECT_EQ(output_[Stream::out], "first\nthird\n");
}

}  // namespace
}  // namespace berth::exec
