// Agent and client on a fake clock: epochs, leases, what is kept for whoever comes next.
#include "berth/agent/agent.h"

#include <algorithm>

#include "berth/os/loop.h"
#include "berth/testing/agent.h"

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

TEST(LineStream, OneThatCannotBeReadHasEnded) {
  os::FakeEnv env;
  const auto listener = env.listen_local("/socket");
  int events = 0;
  LineStream stream(env, [&](const Status& status) {
    ++events;
    EXPECT_FALSE(status);
  });
  stream.open(*env.connect_local("/socket"));
  const os::Fd other = **env.accept_local(*listener);
  ASSERT_TRUE(env.write_some(other, "word\n"));
  env.fault = [](std::string_view call) {
    return call == "read_some" ? std::optional(Error{ErrorKind::io, "is a directory"})
                               : std::nullopt;
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(env.loop().turn(env.now() + milliseconds(1)));
  EXPECT_TRUE(stream.ended());
  EXPECT_EQ(events, 1);
}

TEST(Agent, RunsWhatItIsToldAndReportsIt) {
  FakeWorld world;
  world.env.program = [](const os::SpawnSpec& spec) {
    return os::FakeProgram{.out = "::berth loss=0.5\n", .exit_code = spec.argv[0] == "bad" ? 3 : 0};
  };
  world.open();
  const auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  client->send(launch_of(2, {"bad"}));
  EXPECT_FALSE(client->idle());
  world.run(client.get(), reports, [&] { return client->idle(); });
  ASSERT_TRUE(client->ready());
  EXPECT_EQ(client->agent().id, "1");
  EXPECT_EQ(client->agent().block, cores(4));
  EXPECT_EQ(reports.started, (std::map<std::int64_t, int>{{1, 1}, {2, 1}}));
  EXPECT_EQ(reports.output[1], "::berth loss=0.5\n");
  EXPECT_EQ(reports.metrics, 2U);
  EXPECT_EQ(reports.ends[1].cause, exec::Cause::ok);
  EXPECT_EQ(reports.ends[2].exit_code, 3);
  EXPECT_FALSE(client->lost());
}

TEST(Agent, WhatALaunchSaysOfItsEnvironmentWins) {
  FakeWorld world;
  exec::Environment seen;
  world.env.program = [&](const os::SpawnSpec& spec) {
    seen = spec.environment;
    return os::FakeProgram{};
  };
  world.open();
  const auto client = world.attach(1);
  auto launch = launch_of(1);
  launch.environment = {{"PATH", "/other"}, {"NEW", "1"}};
  client->send(launch);
  Reports reports;
  world.run(client.get(), reports, [&] { return client->idle(); });
  std::erase_if(seen, [](const auto& variable) {
    return variable.first.ends_with("DEVICES") || variable.first == "BERTH_ALLOC";
  });
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (exec::Environment{{"HOME", "/"},
                                     {"NEW", "1"},
                                     {"OMP_NUM_THREADS", "1"},
                                     {"ONLY", "here"},
                                     {"PATH", "/other"},
                                     {"PYTHONUNBUFFERED", "1"}}));
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
  const auto client =
      AttachedAgent::attach(world.env, world.options.directory,
                            {.epoch = 1, .environment = {{"PATH", "/set"}}, .beside = true});
  auto launch = launch_of(1);
  launch.environment = {{"NEW", "1"}};
  client->send(launch);
  Reports reports;
  world.run(client.get(), reports, [&] { return client->idle(); });
  EXPECT_EQ(
      std::ranges::count(seen, std::string("3"), &std::pair<std::string, std::string>::second), 0);
  std::erase_if(seen, [](const auto& variable) {
    return variable.first.ends_with("DEVICES") || variable.first == "BERTH_ALLOC";
  });
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (exec::Environment{{"HOME", "/there"},
                                     {"NEW", "1"},
                                     {"OMP_NUM_THREADS", "1"},
                                     {"PATH", "/set"},
                                     {"PYTHONUNBUFFERED", "1"}}));
}

TEST(Agent, WhatEndedMeanwhileIsToldToTheNextRunnerOnce) {
  FakeWorld world;
  world.options.outlive = true;
  world.env.program = [](const os::SpawnSpec& spec) {
    return takes(seconds(spec.argv[0] == "long" ? 20 : 2), "hello\n");
  };
  world.open();
  auto client = world.attach(1);
  Reports first;
  client->send(launch_of(1));
  client->send(launch_of(2, {"long"}));
  world.run(client.get(), first, [&] { return first.started.size() == 2; });
  client->acknowledge();
  world.turn(client.get(), first);
  client.reset();  // the runner is gone
  Reports nobody;
  world.run(nullptr, nobody, [&] { return world.env.now() > Mono(seconds(5)); });
  ASSERT_TRUE(world.agent);

  client = world.attach(2);
  Reports second;
  world.run(client.get(), second, [&] { return client->ready(); });
  std::vector<std::int64_t> tokens;
  for (const auto& earlier : client->earlier()) tokens.push_back(earlier.token.value);
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{1, 2})) << "one has ended, one runs";
  world.run(client.get(), second, [&] { return client->idle(); });
  EXPECT_TRUE(second.started.empty()) << "acknowledged before";
  EXPECT_EQ(second.ended, (std::map<std::int64_t, int>{{1, 1}, {2, 1}}));
  EXPECT_EQ(second.output[1], "hello\n");

  client->acknowledge();
  world.turn(client.get(), second);
  client = world.attach(3);
  Reports third;
  world.run(client.get(), third, [&] { return client->ready(); });
  EXPECT_TRUE(client->earlier().empty());
  EXPECT_TRUE(client->idle());
  EXPECT_TRUE(third.ended.empty());
}

TEST(Agent, ALaterRunnerDisplacesAnEarlierAndAnEarlierIsRefused) {
  FakeWorld world;
  world.open();
  const auto one = world.attach(7);
  Reports reports;
  world.run(one.get(), reports, [&] { return one->ready(); });
  const auto stale = world.attach(6);
  world.run(stale.get(), reports, [&] { return stale->lost().has_value(); });
  EXPECT_EQ(stale->lost()->kind, ErrorKind::stale);
  world.run(one.get(), reports, [&] { return world.env.now() > Mono(seconds(1)); });
  EXPECT_FALSE(one->lost());
  const auto again = world.attach(7);  // the same runner, after its connection broke
  world.run(again.get(), reports, [&] { return again->ready(); });
  world.turn(one.get(), reports);
  EXPECT_FALSE(one->lost()) << "a greeting of its own may have come late: it calls again";
  const auto later = world.attach(8);
  world.run(later.get(), reports, [&] { return later->ready(); });
  for (const auto* displaced : {one.get(), again.get()}) {
    auto* client = const_cast<AgentClient*>(displaced);
    world.run(client, reports, [&] { return client->lost().has_value(); });
    EXPECT_EQ(client->lost()->kind, ErrorKind::stale) << client->lost()->message;
  }
  later->send(launch_of(1));
  world.run(later.get(), reports, [&] { return later->idle(); });
  EXPECT_EQ(reports.ended[1], 1);
}

TEST(Agent, NothingThatADisplacedRunnerSaysCounts) {
  FakeWorld world;
  world.open();
  const auto one = world.attach(1);
  Reports reports;
  world.run(one.get(), reports, [&] { return one->ready(); });
  const auto two = world.attach(2);
  one->send(launch_of(1));
  one->set_reading(true);  // writes it: it lies in the socket when the second is welcomed
  world.run(two.get(), reports, [&] { return two->ready(); });
  two->send(launch_of(2));
  world.run(two.get(), reports, [&] { return two->idle(); });
  EXPECT_EQ(reports.ended[2], 1);
  // What was read in the turn before the second's hello was the first's right; after it, nothing.
  const std::size_t before = world.env.spawned();
  std::vector<exec::FromWorker> messages;
  one->send(launch_of(3));
  for (int i = 0; i < 5; ++i) world.turn(one.get(), reports);
  EXPECT_TRUE(one->lost());
  EXPECT_EQ(world.env.spawned(), before);
}

TEST(Agent, FinishFreesItOnceIdleAndAcknowledged) {
  FakeWorld world;
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(4)); };
  world.open();
  const auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  client->finish();
  world.run(client.get(), reports, [&] { return client->idle(); });
  for (int i = 0; i < 5; ++i) world.turn(client.get(), reports);
  EXPECT_TRUE(world.agent) << "its last word is not acknowledged";
  client->acknowledge();
  world.run(client.get(), reports, [&] { return !world.agent; });
  for (const auto* name : {"agent.json", "journal.1", "socket", "lock"})
    EXPECT_FALSE(world.env.status(world.options.directory + "/" + name)) << name;
  world.run(client.get(), reports, [&] { return client->lost().has_value(); });
}

TEST(Agent, StopSignalEndsWhatRunsAndIsReported) {
  FakeWorld world;
  world.env.program = [](const os::SpawnSpec&) { return takes(std::chrono::hours(1)); };
  world.open();
  const auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return reports.started.size() == 1; });
  world.env.stops = 1;
  world.run(client.get(), reports, [&] { return !world.agent; });
  world.run(client.get(), reports, [&] { return client->lost().has_value(); });
  EXPECT_EQ(reports.ends[1].cause, exec::Cause::worker_lost) << "nobody asked to stop the task";
}

TEST(Agent, AskedToEndItWaitsInPeaceForWhatDoesNotEnd) {
  FakeWorld world;
  world.options.outlive = true;
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(20)); };
  world.open();
  const auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return reports.started.size() == 1; });
  int waits = 0;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "signal") return Error{ErrorKind::denied, "no"};
    if (call == "wait" && ++waits > 1000) world.agent_env.frozen = world.frozen = true;
    return std::nullopt;
  };
  world.env.stops = 1;
  world.run(client.get(), reports,
            [&] { return !world.agent || world.env.now() > Mono(seconds(60)); });
  EXPECT_EQ(world.agent, nullptr);
  EXPECT_LT(waits, 200);
}

TEST(Agent, ASlowRunnerHearsEverything) {
  for (const std::size_t room : {std::size_t{7'001}, std::size_t{4} << 20}) {
    FakeWorld world;
    world.env.socket_room = room;
    world.env.program = [](const os::SpawnSpec&) {
      return takes(milliseconds(1), std::string(3'000'000, 'y'));
    };
    world.open();
    const auto client = world.attach(1);
    Reports reports;
    for (std::int64_t token = 1; token <= 4; ++token) client->send(launch_of(token));
    world.run(client.get(), reports, [&] { return client->idle(); });
    for (std::int64_t token = 1; token <= 4; ++token)
      EXPECT_EQ(reports.output[token].size(), 3'000'000U);
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
  auto client = world.attach(1);
  Reports reports;
  for (std::int64_t token = 1; token <= 3; ++token) client->send(launch_of(token));
  world.run(client.get(), reports, [&] { return reports.started.size() == 3; });
  client.reset();
  Reports nobody;
  world.run(nullptr, nobody, [&] { return world.env.now() > Mono(seconds(3)); });
  client = world.attach(2);
  Reports second;
  world.run(client.get(), second, [&] { return client->idle() && client->ready(); });
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
  const auto client = world.attach(1);
  Reports reports;
  world.run(client.get(), reports, [&] { return client->ready(); });
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
      world.turn(client.get(), reports);
    }
    ASSERT_TRUE(line) << bytes;
    const auto answer = decode_answer(*line);
    ASSERT_TRUE(answer && std::holds_alternative<Refusal>(*answer)) << *line;
    EXPECT_EQ(std::get<Refusal>(*answer).error.kind, ErrorKind::invalid);
  }
  EXPECT_FALSE(client->lost()) << "others' nonsense is not its";
}

TEST(Agent, StrangersWhoSayNothingHoldNobodyUp) {
  FakeWorld world;
  world.step = milliseconds(1);
  world.open();
  std::vector<os::Fd> strangers;
  Reports reports;
  for (int i = 0; i < 30; ++i) {
    strangers.push_back(*world.env.connect_local(world.options.directory + "/socket"));
    world.turn(nullptr, reports);
  }
  const auto client = world.attach(1);
  world.run(client.get(), reports, [&] { return client->ready(); });
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
  const auto client = world.attach(1);
  Reports reports;
  world.run(client.get(), reports, [&] { return client->ready() || client->lost(); });
  EXPECT_TRUE(client->ready());
  EXPECT_LT(world.env.now(), Mono(milliseconds(50)));
}

TEST(Agent, WithoutADescriptorLeftItAcceptsALittleLater) {
  FakeWorld world;
  world.open();
  int tries = 0;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "accept_local" || world.env.now() > Mono(seconds(3)) || ++tries > 100)
      return std::nullopt;
    return Error{ErrorKind::full, "too many open files"};
  };
  const auto client = world.attach(1);
  Reports reports;
  world.run(client.get(), reports, [&] { return client->ready() || client->lost(); });
  EXPECT_TRUE(client->ready());
  EXPECT_GE(tries, 2);
  EXPECT_LE(tries, 5);
}

TEST(Agent, OneLivesInADirectoryOnce) {
  FakeWorld world;
  world.open();
  EXPECT_EQ(Agent::open(world.env, world.options).error().kind, ErrorKind::busy);
  EXPECT_EQ(forget_agent(world.env, world.options.directory).error().kind, ErrorKind::busy);
  Reports reports;
  const auto client = world.attach(1);
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return client->idle(); });
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
  const auto client = LaunchedAgent::start(world.env, options, side(1));
  Reports reports;
  world.run(client.get(), reports, [&] { return client->ready(); });
  EXPECT_EQ(argv.at(1), "start");
  EXPECT_EQ(ledger->entries()->at(0).holder, (os::ProcessIdentity{4711, 99}));
  world.env.program = [&](const os::SpawnSpec&) {
    return os::FakeProgram{.err = "berth-agent: no space left\n", .exit_code = 1};
  };
  const auto failed = LaunchedAgent::start(world.env, options, side(1));
  world.run(failed.get(), reports, [&] { return failed->lost().has_value(); });
  EXPECT_NE(failed->lost()->message.find("no space left"), std::string::npos);
  world.env.program = [&](const os::SpawnSpec&) { return os::FakeProgram{.out = "ready 1 2\n"}; };
  const auto gone = LaunchedAgent::start(world.env, options, side(1));
  world.run(gone.get(), reports, [&] { return gone->lost().has_value(); });
  EXPECT_EQ(gone->lost()->kind, ErrorKind::stale) << "the alloc was handed over before";
}

}  // namespace
}  // namespace berth::agent
