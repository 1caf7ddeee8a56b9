// Agent and link on a fake clock: epochs, leases, what is kept for whoever comes next.
#include "berth/agent/agent.h"

#include <algorithm>

#include "berth/agent/agent_testing.h"
#include "berth/os/loop.h"

namespace berth::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LineStream, ALastWordIsHeardThoughNothingCanBeSaidAnyMore) {
  os::FakeEnv env;
  const auto listener = env.listen_local("/socket");
  const auto ignore = [](const Status&) {};
  LineStream one(env, ignore);
  one.open(*env.connect_local("/socket"));
  LineStream other(env, ignore);
  other.open(**env.accept_local(*listener));
  one.send_line("finish");
  ASSERT_TRUE(one.write());
  one.close();
  other.send_line("alive");
  ASSERT_TRUE(other.write());
  EXPECT_EQ(other.next(), "finish");
  EXPECT_TRUE(other.ended());
  EXPECT_EQ(other.unsent(), 0U);
}

TEST(Agent, RunsWhatItIsToldAndReportsIt) {
  FakeWorld world;
  world.env.program = [](const os::SpawnSpec& spec) {
    return os::FakeProgram{.out = "::berth loss=0.5\n", .exit_code = spec.argv[0] == "bad" ? 3 : 0};
  };
  world.open();
  const auto link = world.attach(1);
  Heard heard;
  link->tell(launch_of(1));
  link->tell(launch_of(2, {"bad"}));
  EXPECT_FALSE(link->idle());
  world.run(link.get(), heard, [&] { return link->idle(); });
  ASSERT_TRUE(link->ready());
  EXPECT_EQ(link->agent().id, "1");
  EXPECT_EQ(link->agent().block, cores(4));
  EXPECT_EQ(heard.started, (std::map<std::int64_t, int>{{1, 1}, {2, 1}}));
  EXPECT_EQ(heard.output[1], "::berth loss=0.5\n");
  EXPECT_EQ(heard.metrics, 2U);
  EXPECT_EQ(heard.ends[1].cause, exec::Cause::ok);
  EXPECT_EQ(heard.ends[2].exit_code, 3);
  EXPECT_FALSE(link->lost());
}

TEST(Agent, WhatALaunchSaysOfItsEnvironmentWins) {
  FakeWorld world;
  exec::Environment seen;
  world.env.program = [&](const os::SpawnSpec& spec) {
    seen = spec.environment;
    return os::FakeProgram{};
  };
  world.open();
  const auto link = world.attach(1);
  auto launch = launch_of(1);
  launch.environment = {{"PATH", "/other"}, {"NEW", "1"}};
  link->tell(launch);
  Heard heard;
  world.run(link.get(), heard, [&] { return link->idle(); });
  std::erase_if(seen, [](const auto& variable) {
    return variable.first.ends_with("DEVICES") || variable.first == "BERTH_ALLOC";
  });
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (exec::Environment{{"HOME", "/"},
                                     {"NEW", "1"},
                                     {"OMP_NUM_THREADS", "1"},
                                     {"ONLY", "here"},
                                     {"PATH", "/other"}}));
}

TEST(Agent, ARunnerElsewhereAddsToTheEnvironmentOfTheMachine) {
  FakeWorld world;
  exec::Environment seen;
  world.env.program = [&](const os::SpawnSpec& spec) {
    seen = spec.environment;
    return os::FakeProgram{};
  };
  world.env.variables = {{"HOME", "/there"}, {"PATH", "/there/bin"}, {"CUDA_VISIBLE_DEVICES", "3"}};
  world.open();
  const auto link = Link::attach(world.env, world.options.directory,
                                 {.epoch = 1, .environment = {{"PATH", "/set"}}, .beside = true});
  auto launch = launch_of(1);
  launch.environment = {{"NEW", "1"}};
  link->tell(launch);
  Heard heard;
  world.run(link.get(), heard, [&] { return link->idle(); });
  EXPECT_EQ(
      std::ranges::count(seen, std::string("3"), &std::pair<std::string, std::string>::second), 0);
  std::erase_if(seen, [](const auto& variable) {
    return variable.first.ends_with("DEVICES") || variable.first == "BERTH_ALLOC";
  });
  std::ranges::sort(seen);
  EXPECT_EQ(seen,
            (exec::Environment{
                {"HOME", "/there"}, {"NEW", "1"}, {"OMP_NUM_THREADS", "1"}, {"PATH", "/set"}}));
}

TEST(Agent, WhatEndedMeanwhileIsToldToTheNextRunnerOnce) {
  FakeWorld world;
  world.options.outlive = true;
  world.env.program = [](const os::SpawnSpec& spec) {
    return takes(seconds(spec.argv[0] == "long" ? 20 : 2), "hello\n");
  };
  world.open();
  auto link = world.attach(1);
  Heard first;
  link->tell(launch_of(1));
  link->tell(launch_of(2, {"long"}));
  world.run(link.get(), first, [&] { return first.started.size() == 2; });
  link->acknowledge();
  world.turn(link.get(), first);
  link.reset();  // the runner is gone
  Heard nobody;
  world.run(nullptr, nobody, [&] { return world.env.now() > Mono(seconds(5)); });
  ASSERT_TRUE(world.agent);

  link = world.attach(2);
  Heard second;
  world.run(link.get(), second, [&] { return link->ready(); });
  std::vector<std::int64_t> tokens;
  for (const auto& earlier : link->earlier()) tokens.push_back(earlier.token.value);
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{1, 2})) << "one has ended, one runs";
  world.run(link.get(), second, [&] { return link->idle(); });
  EXPECT_TRUE(second.started.empty()) << "acknowledged before";
  EXPECT_EQ(second.ended, (std::map<std::int64_t, int>{{1, 1}, {2, 1}}));
  EXPECT_EQ(second.output[1], "hello\n");

  link->acknowledge();
  world.turn(link.get(), second);
  link = world.attach(3);
  Heard third;
  world.run(link.get(), third, [&] { return link->ready(); });
  EXPECT_TRUE(link->earlier().empty());
  EXPECT_TRUE(link->idle());
  EXPECT_TRUE(third.ended.empty());
}

TEST(Agent, ALaterRunnerDisplacesAnEarlierAndAnEarlierIsRefused) {
  FakeWorld world;
  world.open();
  const auto one = world.attach(7);
  Heard heard;
  world.run(one.get(), heard, [&] { return one->ready(); });
  const auto stale = world.attach(6);
  world.run(stale.get(), heard, [&] { return stale->lost().has_value(); });
  EXPECT_EQ(stale->lost()->kind, ErrorKind::stale);
  world.run(one.get(), heard, [&] { return world.env.now() > Mono(seconds(1)); });
  EXPECT_FALSE(one->lost());
  const auto again = world.attach(7);  // the same runner, after its connection broke
  world.run(again.get(), heard, [&] { return again->ready(); });
  const auto later = world.attach(8);
  world.run(later.get(), heard, [&] { return later->ready(); });
  for (const auto* displaced : {one.get(), again.get()}) {
    auto* link = const_cast<Link*>(displaced);
    world.run(link, heard, [&] { return link->lost().has_value(); });
    EXPECT_EQ(link->lost()->kind, ErrorKind::stale) << link->lost()->message;
  }
  later->tell(launch_of(1));
  world.run(later.get(), heard, [&] { return later->idle(); });
  EXPECT_EQ(heard.ended[1], 1);
}

TEST(Agent, NothingThatADisplacedRunnerSaysCounts) {
  FakeWorld world;
  world.open();
  const auto one = world.attach(1);
  Heard heard;
  world.run(one.get(), heard, [&] { return one->ready(); });
  const auto two = world.attach(2);
  one->tell(launch_of(1));
  one->set_reading(true);  // writes it: it lies in the socket when the second is welcomed
  world.run(two.get(), heard, [&] { return two->ready(); });
  two->tell(launch_of(2));
  world.run(two.get(), heard, [&] { return two->idle(); });
  EXPECT_EQ(heard.ended[2], 1);
  // What was read in the turn before the second's hello was the first's right; after it, nothing.
  const std::size_t before = world.env.spawned();
  std::vector<exec::FromWorker> messages;
  one->tell(launch_of(3));
  for (int i = 0; i < 5; ++i) world.turn(one.get(), heard);
  EXPECT_TRUE(one->lost());
  EXPECT_EQ(world.env.spawned(), before);
}

TEST(Agent, WithItsLeaseEverythingEnds) {
  FakeWorld world;
  world.options.lease = seconds(10);
  world.env.program = [](const os::SpawnSpec&) { return takes(std::chrono::hours(1)); };
  world.open();
  auto link = world.attach(1);
  Heard heard;
  link->tell(launch_of(1));
  world.run(link.get(), heard, [&] { return world.env.now() > Mono(seconds(100)); });
  ASSERT_TRUE(world.agent) << "keepalives hold it";
  link.reset();
  world.run(nullptr, heard, [&] { return !world.agent; });
  EXPECT_LE(world.env.now(), Mono(seconds(112)));
  EXPECT_EQ(world.env.processes_alive(), 0U);
  link = world.attach(2);
  ASSERT_TRUE(link->lost());
  EXPECT_EQ(link->lost()->kind, ErrorKind::not_found);
}

TEST(Agent, OneThatOutlivesItsRunnerGoesOnUntilNothingRuns) {
  FakeWorld world;
  world.options.lease = seconds(10);
  world.options.outlive = true;
  world.env.program = [](const os::SpawnSpec&) { return takes(std::chrono::hours(1), "end\n"); };
  world.open();
  auto link = world.attach(1);
  Heard heard;
  link->tell(launch_of(1));
  world.run(link.get(), heard, [&] { return heard.started.size() == 1; });
  link->acknowledge();
  world.turn(link.get(), heard);
  link.reset();
  world.run(nullptr, heard, [&] { return !world.agent; });
  EXPECT_GE(world.env.now(), Mono(std::chrono::hours(1)));
  const auto remains = read_journal(world.env, world.options.directory);
  ASSERT_TRUE(remains) << remains.error().message;
  Heard late;
  late.take(remains->messages);
  EXPECT_TRUE(late.started.empty());
  EXPECT_EQ(late.output[1], "end\n");
  EXPECT_EQ(late.ended[1], 1);
  EXPECT_TRUE(forget_agent(world.env, world.options.directory));
  EXPECT_TRUE(world.env.list(world.options.directory)->empty());
}

TEST(Agent, FrozenBeyondItsLeaseItSaysNothingAnyMore) {
  for (const auto freeze_s : {5, 11}) {
    FakeWorld world;
    world.options.lease = seconds(10);
    world.env.program = [](const os::SpawnSpec&) { return takes(seconds(4)); };
    world.open();
    auto link = world.attach(1);
    Heard heard;
    link->tell(launch_of(1));
    world.run(link.get(), heard, [&] { return heard.started.size() == 1; });
    world.frozen = true;  // its task ends meanwhile, and keepalives come
    const Mono thaw = world.env.now() + seconds(freeze_s);
    world.run(link.get(), heard, [&] { return world.env.now() >= thaw; });
    world.frozen = false;
    for (int i = 0; i < 10; ++i) world.turn(link.get(), heard);
    EXPECT_EQ(heard.ended.size(), freeze_s < 10 ? 1U : 0U);
    EXPECT_EQ(world.agent != nullptr, freeze_s < 10);
    EXPECT_EQ(link->lost().has_value(), freeze_s > 10);
    if (link->lost()) {
      EXPECT_EQ(link->lost()->kind, ErrorKind::stale);
    }
  }
}

TEST(Agent, ASuspendedMachineCountsToo) {
  FakeWorld world;
  world.options.lease = seconds(10);
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(4)); };
  world.open();
  const auto link = world.attach(1);
  Heard heard;
  link->tell(launch_of(1));
  world.run(link.get(), heard, [&] { return heard.started.size() == 1; });
  world.env.suspended = seconds(60);
  const Mono awake = world.env.now();
  world.run(nullptr, heard, [&] { return world.agent == nullptr; });
  EXPECT_LE(world.env.now(), awake + seconds(1));
  EXPECT_EQ(world.env.processes_alive(), 0U);
  const auto remains = read_journal(world.env, world.options.directory);
  ASSERT_TRUE(remains);
  Heard left;
  left.take(remains->messages);
  EXPECT_TRUE(left.ended.empty());
}

TEST(Agent, FinishFreesItOnceIdleAndAcknowledged) {
  FakeWorld world;
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(4)); };
  world.open();
  const auto link = world.attach(1);
  Heard heard;
  link->tell(launch_of(1));
  link->finish();
  world.run(link.get(), heard, [&] { return link->idle(); });
  for (int i = 0; i < 5; ++i) world.turn(link.get(), heard);
  EXPECT_TRUE(world.agent) << "its last word is not acknowledged";
  link->acknowledge();
  world.run(link.get(), heard, [&] { return !world.agent; });
  for (const auto* name : {"agent.json", "journal.1", "socket", "lock"})
    EXPECT_FALSE(world.env.status(world.options.directory + "/" + name)) << name;
  world.run(link.get(), heard, [&] { return link->lost().has_value(); });
}

TEST(Agent, StopSignalEndsWhatRunsAndIsReported) {
  FakeWorld world;
  world.env.program = [](const os::SpawnSpec&) { return takes(std::chrono::hours(1)); };
  world.open();
  const auto link = world.attach(1);
  Heard heard;
  link->tell(launch_of(1));
  world.run(link.get(), heard, [&] { return heard.started.size() == 1; });
  world.env.stops = 1;
  world.run(link.get(), heard, [&] { return !world.agent; });
  world.run(link.get(), heard, [&] { return link->lost().has_value(); });
  EXPECT_EQ(heard.ends[1].cause, exec::Cause::worker_lost) << "nobody asked to stop the task";
}

TEST(Agent, ASlowRunnerHearsEverything) {
  for (const std::size_t room : {std::size_t{7'001}, std::size_t{4} << 20}) {
    FakeWorld world;
    world.env.socket_room = room;
    world.env.program = [](const os::SpawnSpec&) {
      return takes(milliseconds(1), std::string(3'000'000, 'y'));
    };
    world.open();
    const auto link = world.attach(1);
    Heard heard;
    for (std::int64_t token = 1; token <= 4; ++token) link->tell(launch_of(token));
    world.run(link.get(), heard, [&] { return link->idle(); });
    for (std::int64_t token = 1; token <= 4; ++token)
      EXPECT_EQ(heard.output[token].size(), 3'000'000U);
    EXPECT_LT(world.env.now(), Mono(milliseconds(300))) << "nobody waits for nothing";
  }
}

TEST(Agent, OutputBeyondTheBoundIsDroppedWithANoteAndEndsAreNot) {
  FakeWorld world;
  world.options.outlive = true;
  world.env.program = [](const os::SpawnSpec&) {
    return takes(seconds(1), std::string(40 << 20, 'z') + "\n::berth loss=1\n");
  };
  world.open();
  auto link = world.attach(1);
  Heard heard;
  for (std::int64_t token = 1; token <= 3; ++token) link->tell(launch_of(token));
  world.run(link.get(), heard, [&] { return heard.started.size() == 3; });
  link.reset();
  Heard nobody;
  world.run(nullptr, nobody, [&] { return world.env.now() > Mono(seconds(3)); });
  link = world.attach(2);
  Heard second;
  world.run(link.get(), second, [&] { return link->idle() && link->ready(); });
  EXPECT_EQ(second.ended.size(), 3U);
  EXPECT_EQ(second.metrics, 3U);
  std::size_t bytes = 0, notes = 0;
  for (const auto& [token, text] : second.output) {
    bytes += text.size();
    if (text.find("output is missing here") != std::string::npos) ++notes;
  }
  EXPECT_GT(bytes, std::size_t{63} << 20);
  EXPECT_LT(bytes, std::size_t{66} << 20);
  EXPECT_GE(notes, 1U);
  EXPECT_LE(notes, 3U);
}

TEST(Agent, NonsenseIsAnsweredAndCutOff) {
  FakeWorld world;
  world.open();
  const auto link = world.attach(1);
  Heard heard;
  world.run(link.get(), heard, [&] { return link->ready(); });
  for (const std::string& bytes :
       {std::string("x\n"), std::string("{}\n"), encode(Call(exec::Abandon{})) + "\n",
        encode(Call(Hello{99, 9, {}})) + "\n"}) {
    Status status;
    LineStream stranger(world.env, [&](Status told) { status = std::move(told); });
    stranger.open(*world.env.connect_local(world.options.directory + "/socket"));
    stranger.send(bytes);
    std::optional<std::string> line;
    for (int i = 0; i < 10 && !line; ++i) {
      (void)world.env.loop().turn(world.env.now() + milliseconds(1));
      ASSERT_TRUE(status);
      if (const auto got = stranger.next()) line = *got;
      world.turn(link.get(), heard);
    }
    ASSERT_TRUE(line) << bytes;
    const auto answer = decode_answer(*line);
    ASSERT_TRUE(answer && std::holds_alternative<Refusal>(*answer)) << *line;
    EXPECT_EQ(std::get<Refusal>(*answer).error.kind, ErrorKind::invalid);
  }
  EXPECT_FALSE(link->lost()) << "others' nonsense is not its";
}

TEST(Agent, StrangersWhoSayNothingHoldNobodyUp) {
  FakeWorld world;
  world.step = milliseconds(1);
  world.open();
  std::vector<os::Fd> strangers;
  Heard heard;
  for (int i = 0; i < 30; ++i) {
    strangers.push_back(*world.env.connect_local(world.options.directory + "/socket"));
    world.turn(nullptr, heard);
  }
  const auto link = world.attach(1);
  world.run(link.get(), heard, [&] { return link->ready(); });
  EXPECT_LE(world.env.descriptors(), 30U + 2 * 8 + 4);
}

TEST(Agent, WhoFindsTooManyWaitingTriesAgain) {
  FakeWorld world;
  world.open();
  int refused = 0;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "connect_local" || ++refused > 3) return std::nullopt;
    return Error{ErrorKind::full, "too many wait"};
  };
  const auto link = world.attach(1);
  Heard heard;
  world.run(link.get(), heard, [&] { return link->ready() || link->lost(); });
  EXPECT_TRUE(link->ready());
  EXPECT_LT(world.env.now(), Mono(milliseconds(50)));
}

TEST(Agent, OneLivesInADirectoryOnce) {
  FakeWorld world;
  world.open();
  EXPECT_EQ(Agent::open(world.env, world.options).error().kind, ErrorKind::busy);
  EXPECT_EQ(forget_agent(world.env, world.options.directory).error().kind, ErrorKind::busy);
  Heard heard;
  const auto link = world.attach(1);
  link->tell(launch_of(1));
  world.run(link.get(), heard, [&] { return link->idle(); });
  world.agent.reset();  // killed, so to say
  EXPECT_EQ(Agent::open(world.env, world.options).error().kind, ErrorKind::exists);
}

TEST(Agent, AStartedOneIsWaitedForAndAFailedStartIsLost) {
  FakeWorld world;
  world.open();
  auto ledger = machine::Ledger::open(world.env, "/ledger");
  const auto alloc = ledger->acquire({cores(4)}, {cores(2).resources, "a-1"}, {});
  StartOptions options{.program = "/bin/berth-agent",
                       .directory = world.options.directory,
                       .block = cores(2),
                       .ledger_directory = "/ledger",
                       .alloc = alloc->id};
  std::vector<std::string> argv;
  world.env.program = [&](const os::SpawnSpec& spec) {
    argv = spec.argv;
    return os::FakeProgram{.out = "ready 4711 99\n"};
  };
  const auto link = Link::start(world.env, options, side(1));
  Heard heard;
  world.run(link.get(), heard, [&] { return link->ready(); });
  EXPECT_EQ(argv.at(1), "start");
  EXPECT_EQ(ledger->entries()->at(0).holder, (os::ProcessIdentity{4711, 99}));
  world.env.program = [&](const os::SpawnSpec&) {
    return os::FakeProgram{.err = "berth-agent: no space left\n", .exit_code = 1};
  };
  const auto failed = Link::start(world.env, options, side(1));
  world.run(failed.get(), heard, [&] { return failed->lost().has_value(); });
  EXPECT_NE(failed->lost()->message.find("no space left"), std::string::npos);
  world.env.program = [&](const os::SpawnSpec&) { return os::FakeProgram{.out = "ready 1 2\n"}; };
  const auto gone = Link::start(world.env, options, side(1));
  world.run(gone.get(), heard, [&] { return gone->lost().has_value(); });
  EXPECT_EQ(gone->lost()->kind, ErrorKind::stale) << "the alloc was handed over before";
}

}  // namespace
}  // namespace berth::agent
