// Agents as real processes: what survives whose death.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>

#include "berth/agent/agent_testing.h"
#include "berth/base/rng.h"
#include "berth/os/loop.h"
#include "berth/os/posix_testing.h"

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

  std::unique_ptr<Link> start(std::int64_t epoch = 1) {
    auto link = Link::start(*env_, options_, runner(epoch));
    Heard nothing;
    EXPECT_TRUE(run(*link, nothing, [&] { return link->ready(); }));
    if (!link->ready()) ADD_FAILURE() << link->lost()->message;
    agents_.push_back(agent());
    return link;
  }
  std::unique_ptr<Link> attach(std::int64_t epoch) {
    return Link::attach(*env_, options_.directory, runner(epoch));
  }
  /// By a shell that ends with running "$@".
  std::unique_ptr<Link> through(const std::string& script) {
    return Link::through(
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

  bool run(Link& link, Heard& heard, const std::function<bool()>& enough) {
    const Mono until = env_->now() + seconds(20);
    while (!enough()) {
      if (env_->now() > until) return false;
      link.set_reading(true);
      EXPECT_TRUE(env_->loop().turn(env_->now() + milliseconds(100)));
      std::vector<exec::FromWorker> messages;
      link.take_messages(messages);
      heard.take(messages);
    }
    return true;
  }

  StartOptions options_;
  std::vector<os::ProcessIdentity> agents_;
};

TEST_F(AgentEnvPosixTest, BelongsToNobodyAndHoldsNothingOfOurs) {
  const auto link = start();
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
  link->finish();
  EXPECT_TRUE(gone(process));
  EXPECT_TRUE(comes_true([&] { return !env_->status(options_.directory); }))
      << "it takes all along";
}

TEST_F(AgentEnvPosixTest, AnEmptyTaskIsHeardOfAndTenMegabytesComeWhole) {
  const auto link = start();
  Heard heard;
  link->tell(shell(1, "exit 0"));
  link->tell(shell(2, "head -c 10000000 /dev/urandom | tee copy | head -c 20000000"));
  link->tell(shell(3, "umask; echo $BERTH_TEST_VALUE >&2"));
  ASSERT_TRUE(run(*link, heard, [&] { return link->idle(); }));
  EXPECT_EQ(heard.ends[1].cause, exec::Cause::ok);
  EXPECT_TRUE(heard.output[2] == env_->read_file(path("copy"), 1 << 24).value());
  EXPECT_TRUE(heard.output[3].starts_with(fmt::format("{:04o}\n", env_->mask())))
      << heard.output[3];
}

TEST_F(AgentEnvPosixTest, OutputThatNobodyWantsStaysInThePipe) {
  const auto link = start();
  Heard heard;
  const auto turn = [&](bool read_output) {
    link->set_reading(read_output);
    EXPECT_TRUE(env_->loop().turn(env_->now() + milliseconds(5)));
    std::vector<exec::FromWorker> messages;
    link->take_messages(messages);
    heard.take(messages);
  };
  turn(false);
  link->tell(shell(1, "head -c 10000000 /dev/zero"));
  for (int i = 0; i < 60; ++i) turn(false);
  EXPECT_EQ(heard.output[1].size(), 0U);
  EXPECT_EQ(heard.started.size(), 1U);
  while (!link->idle()) turn(true);
  EXPECT_EQ(heard.output[1].size(), 10'000'000U);
}

TEST_F(AgentEnvPosixTest, ItsDeathIsItsTasksDeathAndItsJournalStays) {
  options_.lease = seconds(30);
  auto link = start();
  Heard heard;
  link->tell(shell(1, "echo before"));
  link->tell(shell(2, "echo $$; exec sleep 100"));
  ASSERT_TRUE(
      run(*link, heard, [&] { return heard.ended.size() == 1 && !heard.output[2].empty(); }));
  const auto task = identity(static_cast<pid_t>(std::stoi(heard.output[2])));
  EXPECT_TRUE(env_->alive(task));
  const auto written = [&] {
    const auto journal = env_->read_file(options_.directory + "/journal.1", 1 << 20);
    return journal && std::ranges::count(*journal, '\n') >= 5;
  };
  EXPECT_TRUE(comes_true(written)) << "a runner hears of it a moment before it is written";
  EXPECT_TRUE(env_->signal_process(agent(), SIGKILL));
  EXPECT_TRUE(gone(task));
  ASSERT_TRUE(run(*link, heard, [&] { return link->lost().has_value(); }));
  link = attach(2);
  ASSERT_TRUE(link->lost());
  EXPECT_EQ(link->lost()->kind, ErrorKind::not_found);
  const auto remains = read_journal(*env_, options_.directory);
  ASSERT_TRUE(remains) << remains.error().message;
  Heard left;
  left.take(remains->messages);
  EXPECT_EQ(left.started.size(), 2U);
  EXPECT_EQ(left.ended, (std::map<std::int64_t, int>{{1, 1}}));
  EXPECT_EQ(left.output[1], "before\n");
  EXPECT_TRUE(forget_agent(*env_, options_.directory));
  EXPECT_FALSE(env_->status(options_.directory));
}

TEST_F(AgentEnvPosixTest, TermEndsItsTasksAndIsToldBeforeItGoes) {
  const auto link = start();
  Heard heard;
  link->tell(shell(1, "trap '' TERM; sleep 100 & wait; sleep 100"));
  ASSERT_TRUE(run(*link, heard, [&] { return heard.started.size() == 1; }));
  const auto process = agent();
  EXPECT_TRUE(env_->signal_process(process, SIGTERM));
  ASSERT_TRUE(run(*link, heard, [&] { return link->lost().has_value(); }));
  EXPECT_EQ(heard.ends[1].cause, exec::Cause::worker_lost) << "nobody asked to stop the task";
  EXPECT_TRUE(gone(process));
  EXPECT_TRUE(read_journal(*env_, options_.directory)) << "nobody acknowledged: it is kept";
}

TEST_F(AgentEnvPosixTest, RunnersAreKilledAtAnyMomentAndNothingIsLostOrTwice) {
  Rng rng(3);
  auto link = start();
  std::set<std::int64_t> recorded;
  std::int64_t token = 0;
  for (std::int64_t epoch = 2; epoch < 60; ++epoch) {
    std::set<std::int64_t> now;
    const Mono dies = env_->now() + Duration(rng.below(15'000'000));
    while (env_->now() < dies) {
      if (rng.below(3) == 0) {
        ++token;
        link->tell(
            shell(token, fmt::format("echo {0} >> witness; head -c 20000 /dev/zero", token)));
      }
      Heard heard;
      link->set_reading(true);
      (void)env_->loop().turn(env_->now() + milliseconds(1));
      std::vector<exec::FromWorker> messages;
      link->take_messages(messages);
      heard.take(messages);
      ASSERT_FALSE(link->lost()) << link->lost()->message;
      for (const auto& [ended, times] : heard.ended) {
        EXPECT_TRUE(times == 1 && now.insert(ended).second) << "twice";
        recorded.insert(ended);
      }
      if (rng.below(2) == 0) link->acknowledge();
    }
    link = attach(epoch);
  }
  Heard heard;
  ASSERT_TRUE(run(*link, heard, [&] { return link->ready() && link->idle(); }));
  for (const auto& [ended, times] : heard.ended) recorded.insert(ended);
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
    std::vector<std::unique_ptr<Link>> links;
    Heard heard;
    for (int i = 0; i < kSideBySide; ++i) {
      options_.directory = path(fmt::format("agents/{}-{}", round, i));
      options_.lease = milliseconds(500);
      options_.outlive = false;
      links.push_back(start());
      links.back()->tell(shell(i + 1, "sleep 0.1; echo done"));
      ASSERT_TRUE(run(*links.back(), heard, [&] { return heard.started.contains(i + 1); }));
      stopped.push_back(agent());
      ASSERT_TRUE(env_->signal_process(stopped.back(), SIGSTOP));
      heard.output.clear();
    }
    const Mono until = env_->now() + milliseconds(520);
    while (env_->now() < until) {  // keepalives are sent; the answers, if any, are not heard yet
      for (const auto& link : links) link->set_reading(true);
      (void)env_->wait({}, env_->now() + milliseconds(20));
    }
    for (const auto& process : stopped) ASSERT_TRUE(env_->signal_process(process, SIGCONT));
    for (const auto& process : stopped) alive += gone(process) ? 0 : 1;
    Heard late;
    for (const auto& link : links) {
      EXPECT_TRUE(run(*link, late, [&] { return link->lost().has_value(); }));
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
    auto link = start();
    Heard heard;
    link->tell(
        shell(1, fmt::format("sleep 0.8; echo x > {}", outlive ? "went-on" : "must-not-be")));
    ASSERT_TRUE(run(*link, heard, [&] { return heard.started.size() == 1; }));
    const auto process = agent();
    link.reset();
    EXPECT_TRUE(gone(process));
  }
  EXPECT_TRUE(env_->status(path("went-on")));
  (void)env_->loop().turn(env_->now() + milliseconds(800));
  EXPECT_FALSE(env_->status(path("must-not-be")));
}

TEST_F(AgentEnvPosixTest, ALongDirectoryIsNoMatter) {
  options_.directory = directory_;
  for (int i = 0; i < 12; ++i) options_.directory += "/a-rather-long-name-of-a-directory";
  auto link = start();
  Heard heard;
  link->tell(shell(1, "exit 0"));
  EXPECT_TRUE(run(*link, heard, [&] { return link->idle(); }));
  link = attach(2);
  EXPECT_TRUE(run(*link, heard, [&] { return link->ready(); }));
}

TEST_F(AgentEnvPosixTest, AStartThatFailsSaysWhy) {
  put("agents", "a file");
  const auto link = Link::start(*env_, options_, runner(1));
  Heard heard;
  ASSERT_TRUE(run(*link, heard, [&] { return link->lost().has_value(); }));
  EXPECT_NE(link->lost()->message.find("Not a directory"), std::string::npos)
      << link->lost()->message;
}

TEST_F(AgentEnvPosixTest, ASecondOneInItsDirectoryIsRefused) {
  const auto link = start();
  const auto second = Link::start(*env_, options_, runner(2));
  Heard heard;
  ASSERT_TRUE(run(*second, heard, [&] { return second->lost().has_value(); }));
  EXPECT_NE(second->lost()->message.find("locked"), std::string::npos) << second->lost()->message;
  EXPECT_FALSE(link->lost());
}

TEST_F(AgentEnvPosixTest, TheAllocIsItsOwnAndLivesAsLongAsIt) {
  auto ledger = machine::Ledger::open(*env_, path("ledger"));
  ASSERT_TRUE(ledger);
  const machine::Host host{two_cores()};
  const auto alloc = ledger->acquire(host, {two_cores().resources, "a-1"}, {});
  ASSERT_TRUE(alloc);
  options_.ledger_directory = path("ledger");
  options_.alloc = alloc->id;
  const auto link = start();
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
  const auto link = through("echo Welcome to the machine; printf 'no end '; exec \"$@\"");
  Heard heard;
  link->tell(shell(1, "head -c 3000000 /dev/zero; exit 3"));
  EXPECT_TRUE(run(*link, heard, [&] { return link->ready() && link->idle(); }));
  EXPECT_EQ(heard.ends[1].exit_code, 3);
  EXPECT_EQ(heard.output[1].size(), 3'000'000U);
  EXPECT_EQ(link->agent().id, "1");
}

/// The connection is cut again and again, by the far end and in the middle of anything.
TEST_F(AgentEnvPosixTest, ALineThatBreaksIsMadeAgain) {
  start().reset();
  const auto link = through("(sleep 0.$(($$ % 7))1; kill -9 $$) & exec \"$@\"");
  Heard heard;
  constexpr int kTasks = 12;
  for (int i = 1; i <= kTasks; ++i) {
    auto launch = shell(i, fmt::format("echo once >>ran.{}; sleep 0.1; echo {}", i, i));
    launch.request.resources.set(Known::cpu, 10);
    link->tell(launch);
  }
  EXPECT_TRUE(run(*link, heard, [&] { return link->idle(); }));
  for (int i = 1; i <= kTasks; ++i) {
    EXPECT_EQ(heard.ended[i], 1);
    EXPECT_EQ(heard.output[i], fmt::format("{}\n", i));
    EXPECT_EQ(env_->read_file(path(fmt::format("ran.{}", i)), 100).value_or(""), "once\n");
  }
}

TEST_F(AgentEnvPosixTest, ALineThatFindsNoAgentIsLost) {
  const auto link = through("exec \"$@\"");
  Heard heard;
  EXPECT_TRUE(run(*link, heard, [&] { return link->lost().has_value(); }));
  EXPECT_EQ(link->lost()->kind, ErrorKind::impossible);
  const auto dead = Link::through(
      *env_, {.command = {"/bin/sh", "-c", "echo no route >&2; exit 1"}, .agent_file = {}},
      std::chrono::milliseconds(700), std::chrono::seconds(1), runner(2));
  EXPECT_TRUE(run(*dead, heard, [&] { return dead->lost().has_value(); }));
  EXPECT_EQ(dead->lost()->kind, ErrorKind::stale);
  EXPECT_NE(dead->lost()->message.find("no route"), std::string::npos) << dead->lost()->message;
}

}  // namespace
}  // namespace berth::agent
