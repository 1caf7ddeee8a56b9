// Agents as real processes: what survives whose death.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>

#include "berth/base/rng.h"
#include "berth/os/loop.h"
#include "berth/testing/agent.h"
#include "berth/testing/posix.h"

namespace berth::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AgentEnvPosixTest : public os::PosixTest {
 protected:
  AgentEnvPosixTest() {
    const auto program = agent_program(*env_);
    EXPECT_TRUE(program) << "berth-agent has to be built first";
    options_ = {
        .program = program.value_or(""), .directory = path("agents/1"), .block = two_cores()};
  }
  ~AgentEnvPosixTest() override {
    for (const auto& agent : agents_) (void)env_->signal_process(agent, SIGKILL);
  }

  machine::Block two_cores() {
    const auto available = env_->affinity();
    machine::Block block;
    for (std::size_t i = 0; i < available.size() && i < 2; ++i)
      block.cores.push_back({available[i], 0, 1000});
    block.resources.set(Known::cpu, static_cast<std::int64_t>(block.cores.size()) * 1000);
    return block;
  }
  exec::Launch shell(std::int64_t token, const std::string& script) {
    auto launch = launch_of(token, {"/bin/sh", "-c", script});
    launch.request.resources.set(Known::cpu, 10);
    launch.environment.clear();
    launch.directory = directory_;
    return launch;
  }
  RunnerSide runner(std::int64_t epoch) { return {epoch, env_->environment()}; }

  std::unique_ptr<AgentClient> start(std::int64_t epoch = 1) {
    auto client = LaunchedAgent::start(*env_, options_, runner(epoch));
    Reports nothing;
    EXPECT_TRUE(run(*client, nothing, [&] { return client->ready(); }));
    if (!client->ready()) ADD_FAILURE() << client->lost()->message;
    agents_.push_back(agent());
    return client;
  }
  std::unique_ptr<AgentClient> attach(std::int64_t epoch) {
    return AttachedAgent::attach(*env_, options_.directory, runner(epoch));
  }
  /// By a shell that ends with running "$@".
  std::unique_ptr<AgentClient> through(const std::string& script) {
    return RemoteAgent::through(
        *env_,
        {.command = {"/bin/sh", "-c", script, "sh", options_.program, "stdio", options_.directory},
         .agent_file = {}},
        std::chrono::seconds(20), std::chrono::seconds(20), runner(2));
  }
  /// By its file.
  os::ProcessIdentity agent() {
    const auto text = env_->read_file(options_.directory + "/agent.json", 1 << 16);
    if (!text) return {};
    const auto number = [&](const std::string& key) {
      return std::stoll(text->substr(text->find("\"" + key + "\":") + key.size() + 3));
    };
    return {static_cast<pid_t>(number("pid")), number("started_at")};
  }
  bool gone(const os::ProcessIdentity& process) {
    return comes_true([&] { return !env_->alive(process); });
  }

  bool run(AgentClient& client, Reports& reports, const std::function<bool()>& enough) {
    const Mono until = env_->now() + seconds(20);
    while (!enough()) {
      if (env_->now() > until) return false;
      client.set_reading(true);
      EXPECT_TRUE(env_->loop().turn(env_->now() + milliseconds(100)));
      std::vector<exec::FromWorker> messages;
      client.take_messages(messages);
      reports.take(messages);
    }
    return true;
  }

  StartOptions options_;
  std::vector<os::ProcessIdentity> agents_;
};

TEST_F(AgentEnvPosixTest, BelongsToNobodyAndHoldsNothingOfOurs) {
  const auto client = start();
  const os::ProcessIdentity process = agent();
  EXPECT_EQ(stat_field(process.pid, 6), std::to_string(process.pid)) << "its own session";
  const std::string proc = fmt::format("/proc/{}", process.pid);
  EXPECT_EQ(env_->real_path(proc + "/cwd").value(), "/");
  std::set<std::string> open;
  const auto descriptors = env_->list(proc + "/fd");
  ASSERT_TRUE(descriptors);
  for (const auto& fd : *descriptors)
    open.insert(std::filesystem::read_symlink(proc + "/fd/" + fd).string());
  for (const auto& file : open)
    EXPECT_TRUE(file == "/dev/null" || file.starts_with(directory_) ||
                file.starts_with("socket:") || file.starts_with("anon_inode:"))
        << file;
  EXPECT_EQ(env_->status(options_.directory)->mode, 0700U);
  for (const auto* name : {"socket", "agent.json", "log", "lock"})
    EXPECT_EQ(env_->status(options_.directory + "/" + name)->mode, 0600U) << name;
  client->finish();
  EXPECT_TRUE(gone(process));
  EXPECT_TRUE(comes_true([&] { return !env_->status(options_.directory); }))
      << "it takes all along";
}

TEST_F(AgentEnvPosixTest, AnEmptyTaskIsHeardOfAndTenMegabytesComeWhole) {
  const auto client = start();
  Reports reports;
  client->send(shell(1, "exit 0"));
  client->send(shell(2, "head -c 10000000 /dev/urandom | tee copy | head -c 20000000"));
  client->send(shell(3, "umask; echo $BERTH_TEST_VALUE >&2"));
  ASSERT_TRUE(run(*client, reports, [&] { return client->idle(); }));
  EXPECT_EQ(reports.ends[1].cause, exec::Cause::ok);
  EXPECT_TRUE(reports.output[2] == env_->read_file(path("copy"), 1 << 24).value());
  EXPECT_TRUE(reports.output[3].starts_with(fmt::format("{:04o}\n", env_->mask())))
      << reports.output[3];
}

TEST_F(AgentEnvPosixTest, OutputThatNobodyWantsStaysInThePipe) {
  const auto client = start();
  Reports reports;
  const auto turn = [&](bool read_output) {
    client->set_reading(read_output);
    EXPECT_TRUE(env_->loop().turn(env_->now() + milliseconds(5)));
    std::vector<exec::FromWorker> messages;
    client->take_messages(messages);
    reports.take(messages);
  };
  turn(false);
  client->send(shell(1, "head -c 10000000 /dev/zero"));
  for (int i = 0; i < 60; ++i) turn(false);
  EXPECT_EQ(reports.output[1].size(), 0U);
  EXPECT_EQ(reports.started.size(), 1U);
  while (!client->idle()) turn(true);
  EXPECT_EQ(reports.output[1].size(), 10'000'000U);
}

TEST_F(AgentEnvPosixTest, ItsDeathIsItsTasksDeathAndItsJournalStays) {
  options_.lease = seconds(30);
  auto client = start();
  Reports reports;
  client->send(shell(1, "echo before"));
  client->send(shell(2, "echo $$; exec sleep 100"));
  ASSERT_TRUE(run(*client, reports,
                  [&] { return reports.ended.size() == 1 && !reports.output[2].empty(); }));
  const auto task = identity(static_cast<pid_t>(std::stoi(reports.output[2])));
  EXPECT_TRUE(env_->alive(task));
  const auto written = [&] {
    const auto journal = env_->read_file(options_.directory + "/journal.1", 1 << 20);
    return journal && std::ranges::count(*journal, '\n') >= 5;
  };
  EXPECT_TRUE(comes_true(written)) << "a runner hears of it a moment before it is written";
  EXPECT_TRUE(env_->signal_process(agent(), SIGKILL));
  EXPECT_TRUE(gone(task));
  ASSERT_TRUE(run(*client, reports, [&] { return client->lost().has_value(); }));
  client = attach(2);
  ASSERT_TRUE(client->lost());
  EXPECT_EQ(client->lost()->kind, ErrorKind::not_found);
  const auto unacknowledged = read_journal(*env_, options_.directory);
  ASSERT_TRUE(unacknowledged) << unacknowledged.error().message;
  Reports left;
  left.take(*unacknowledged);
  EXPECT_EQ(left.started.size(), 2U);
  EXPECT_EQ(left.ended, (std::map<std::int64_t, int>{{1, 1}}));
  EXPECT_EQ(left.output[1], "before\n");
  EXPECT_TRUE(forget_agent(*env_, options_.directory));
  EXPECT_FALSE(env_->status(options_.directory));
}

TEST_F(AgentEnvPosixTest, TermEndsItsTasksAndIsToldBeforeItGoes) {
  const auto client = start();
  Reports reports;
  client->send(shell(1, "trap '' TERM; sleep 100 & wait; sleep 100"));
  ASSERT_TRUE(run(*client, reports, [&] { return reports.started.size() == 1; }));
  const auto process = agent();
  EXPECT_TRUE(env_->signal_process(process, SIGTERM));
  ASSERT_TRUE(run(*client, reports, [&] { return client->lost().has_value(); }));
  EXPECT_EQ(reports.ends[1].cause, exec::Cause::worker_lost) << "nobody asked to stop the task";
  EXPECT_TRUE(gone(process));
  EXPECT_TRUE(read_journal(*env_, options_.directory)) << "nobody acknowledged: it is kept";
}

TEST_F(AgentEnvPosixTest, RunnersAreKilledAtAnyMomentAndNothingIsLostOrTwice) {
  Rng rng(3);
  auto client = start();
  std::set<std::int64_t> recorded;
  std::int64_t token = 0;
  for (std::int64_t epoch = 2; epoch < 60; ++epoch) {
    std::set<std::int64_t> now;
    const Mono dies = env_->now() + Duration(rng.below(15'000'000));
    while (env_->now() < dies) {
      if (rng.below(3) == 0) {
        ++token;
        client->send(
            shell(token, fmt::format("echo {0} >> witness; head -c 20000 /dev/zero", token)));
      }
      Reports reports;
      client->set_reading(true);
      (void)env_->loop().turn(env_->now() + milliseconds(1));
      std::vector<exec::FromWorker> messages;
      client->take_messages(messages);
      reports.take(messages);
      ASSERT_FALSE(client->lost()) << client->lost()->message;
      for (const auto& [ended, times] : reports.ended) {
        EXPECT_TRUE(times == 1 && now.insert(ended).second) << "twice";
        recorded.insert(ended);
      }
      if (rng.below(2) == 0) client->acknowledge();
    }
    client = attach(epoch);
  }
  Reports reports;
  ASSERT_TRUE(run(*client, reports, [&] { return client->ready() && client->idle(); }));
  for (const auto& [ended, times] : reports.ended) recorded.insert(ended);
  const auto witness = env_->read_file(path("witness"), 1 << 20);
  ASSERT_TRUE(witness);
  std::set<std::int64_t> ran;
  for (const auto line : split(*witness, '\n'))
    if (const auto number = parse_integer(line)) {
      EXPECT_TRUE(ran.insert(*number).second) << *number << " ran twice";
    }
  EXPECT_GT(ran.size(), 20U);
  EXPECT_EQ(ran, recorded);
}

/// Ten agents at a time are stopped with a task that ends meanwhile; keepalives come, and lie in
/// the socket; a lease later they go on.
TEST_F(AgentEnvPosixTest, StoppedBeyondTheLeaseAndContinuedItReportsNothingAHundredOfAHundred) {
  constexpr int kRounds = 10;
  constexpr int kSideBySide = 10;
  int said = 0, alive = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<os::ProcessIdentity> stopped;
    std::vector<std::unique_ptr<AgentClient>> clients;
    Reports reports;
    for (int i = 0; i < kSideBySide; ++i) {
      options_.directory = path(fmt::format("agents/{}-{}", round, i));
      options_.lease = milliseconds(500);
      options_.outlive = false;
      clients.push_back(start());
      clients.back()->send(shell(i + 1, "sleep 0.1; echo done"));
      ASSERT_TRUE(run(*clients.back(), reports, [&] { return reports.started.contains(i + 1); }));
      stopped.push_back(agent());
      ASSERT_TRUE(env_->signal_process(stopped.back(), SIGSTOP));
      reports.output.clear();
    }
    const Mono until = env_->now() + milliseconds(520);
    while (env_->now() < until) {  // keepalives are sent; the answers, if any, are not heard yet
      for (const auto& client : clients) client->set_reading(true);
      (void)env_->wait({}, env_->now() + milliseconds(20));
    }
    for (const auto& process : stopped) ASSERT_TRUE(env_->signal_process(process, SIGCONT));
    for (const auto& process : stopped) alive += gone(process) ? 0 : 1;
    Reports late;
    for (const auto& client : clients) {
      EXPECT_TRUE(run(*client, late, [&] { return client->lost().has_value(); }));
    }
    said += static_cast<int>(late.ended.size() + late.output.size());
  }
  EXPECT_EQ(said, 0);
  EXPECT_EQ(alive, 0);
}

TEST_F(AgentEnvPosixTest, WithoutARunnerItsTasksGoOnOrEndWithTheLease) {
  options_.lease = milliseconds(300);
  for (const bool outlive : {true, false}) {
    options_.outlive = outlive;
    options_.directory = path(outlive ? "agents/outlives" : "agents/ends");
    auto client = start();
    Reports reports;
    client->send(
        shell(1, fmt::format("sleep 0.8; echo x > {}", outlive ? "went-on" : "must-not-be")));
    ASSERT_TRUE(run(*client, reports, [&] { return reports.started.size() == 1; }));
    const auto process = agent();
    client.reset();
    EXPECT_TRUE(gone(process));
  }
  EXPECT_TRUE(env_->status(path("went-on")));
  (void)env_->loop().turn(env_->now() + milliseconds(800));
  EXPECT_FALSE(env_->status(path("must-not-be")));
}

TEST_F(AgentEnvPosixTest, ALongDirectoryIsNoMatter) {
  options_.directory = directory_;
  for (int i = 0; i < 12; ++i) options_.directory += "/a-rather-long-name-of-a-directory";
  auto client = start();
  Reports reports;
  client->send(shell(1, "exit 0"));
  EXPECT_TRUE(run(*client, reports, [&] { return client->idle(); }));
  client = attach(2);
  EXPECT_TRUE(run(*client, reports, [&] { return client->ready(); }));
}

TEST_F(AgentEnvPosixTest, AStartThatFailsSaysWhy) {
  put("agents", "a file");
  const auto client = LaunchedAgent::start(*env_, options_, runner(1));
  Reports reports;
  ASSERT_TRUE(run(*client, reports, [&] { return client->lost().has_value(); }));
  EXPECT_NE(client->lost()->message.find("Not a directory"), std::string::npos)
      << client->lost()->message;
}

TEST_F(AgentEnvPosixTest, ASecondOneInItsDirectoryIsRefused) {
  const auto client = start();
  const auto second = LaunchedAgent::start(*env_, options_, runner(2));
  Reports reports;
  ASSERT_TRUE(run(*second, reports, [&] { return second->lost().has_value(); }));
  EXPECT_NE(second->lost()->message.find("locked"), std::string::npos) << second->lost()->message;
  EXPECT_FALSE(client->lost());
}

TEST_F(AgentEnvPosixTest, TheAllocIsItsOwnAndLivesAsLongAsIt) {
  auto ledger = machine::Ledger::open(*env_, path("ledger"));
  ASSERT_TRUE(ledger);
  const machine::Host host{two_cores()};
  const auto alloc = ledger->acquire(host, {two_cores().resources, "a-1"}, {});
  ASSERT_TRUE(alloc);
  options_.ledger_directory = path("ledger");
  options_.alloc = alloc->id;
  const auto client = start();
  EXPECT_EQ(ledger->entries()->at(0).holder, agent());
  EXPECT_FALSE(ledger->acquire(host, {two_cores().resources, "b-1"}, {}));
  EXPECT_EQ(ledger->release(alloc->id).error().kind, ErrorKind::stale);
  const auto process = agent();
  ASSERT_TRUE(env_->signal_process(process, SIGKILL));
  EXPECT_TRUE(gone(process));
  EXPECT_TRUE(ledger->acquire(host, {two_cores().resources, "b-1"}, {}));
}

/// `berth-agent stdio DIR` joins its standard input and output to the agent: what ssh would carry,
/// behind whatever a login says.
TEST_F(AgentEnvPosixTest, ThroughALineItIsTheSameAgent) {
  start().reset();
  const auto client = through("echo Welcome to the machine; printf 'no end '; exec \"$@\"");
  Reports reports;
  client->send(shell(1, "head -c 3000000 /dev/zero; exit 3"));
  EXPECT_TRUE(run(*client, reports, [&] { return client->ready() && client->idle(); }));
  EXPECT_EQ(reports.ends[1].exit_code, 3);
  EXPECT_EQ(reports.output[1].size(), 3'000'000U);
  EXPECT_EQ(client->agent().id, "1");
}

/// The connection is cut again and again, by the far end and in the middle of anything.
TEST_F(AgentEnvPosixTest, ALineThatBreaksIsMadeAgain) {
  start().reset();
  const auto client = through("(sleep 0.$(($$ % 7))1; kill -9 $$) & exec \"$@\"");
  Reports reports;
  constexpr int kTasks = 12;
  for (int i = 1; i <= kTasks; ++i) {
    auto launch = shell(i, fmt::format("echo once >>ran.{}; sleep 0.1; echo {}", i, i));
    launch.request.resources.set(Known::cpu, 10);
    client->send(launch);
  }
  EXPECT_TRUE(run(*client, reports, [&] { return client->idle(); }));
  for (int i = 1; i <= kTasks; ++i) {
    EXPECT_EQ(reports.ended[i], 1);
    EXPECT_EQ(reports.output[i], fmt::format("{}\n", i));
    EXPECT_EQ(env_->read_file(path(fmt::format("ran.{}", i)), 100).value_or(""), "once\n");
  }
}

TEST_F(AgentEnvPosixTest, ALineThatFindsNoAgentIsLost) {
  const auto client = through("exec \"$@\"");
  Reports reports;
  EXPECT_TRUE(run(*client, reports, [&] { return client->lost().has_value(); }));
  EXPECT_EQ(client->lost()->kind, ErrorKind::impossible);
  const auto dead = RemoteAgent::through(
      *env_, {.command = {"/bin/sh", "-c", "echo no route >&2; exit 1"}, .agent_file = {}},
      std::chrono::milliseconds(700), std::chrono::seconds(1), runner(2));
  EXPECT_TRUE(run(*dead, reports, [&] { return dead->lost().has_value(); }));
  EXPECT_EQ(dead->lost()->kind, ErrorKind::stale);
  EXPECT_NE(dead->lost()->message.find("no route"), std::string::npos) << dead->lost()->message;
}

}  // namespace
}  // namespace berth::agent
