// Runners that die and calls that fail, anywhere, on a fake clock.
#include <map>
#include <set>
#include <string>

#include "berth/agent/layout.h"
#include "berth/base/rng.h"
#include "berth/testing/agent.h"

namespace berth::agent {
namespace {

using std::chrono::milliseconds;

/// A runner that dies at any moment, before or after it acknowledged, and is followed by the next;
/// records as a store does: an end once, by its token.
void survive(std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Rng rng(seed);
  FakeWorld world;
  world.options.outlive = true;
  world.env.socket_room = 1 + rng.below(5000);
  std::set<std::string> ran;
  world.env.program = [&](const os::SpawnSpec& spec) {
    EXPECT_TRUE(ran.insert(spec.argv.at(1)).second) << "started twice";
    return takes(milliseconds(rng.below(200)), std::string(rng.below(3000), 'o'));
  };
  world.open();
  std::set<std::int64_t> recorded;
  std::int64_t told = 0;
  for (std::int64_t epoch = 1; epoch < 20; ++epoch) {
    auto client = world.attach(epoch);
    const auto life = rng.below(30);
    std::set<std::int64_t> first_time;
    for (std::uint64_t turn = 0; turn < life; ++turn) {
      while (rng.below(3) == 0) {
        const std::int64_t token = ++told;
        client->send(launch_of(token, {"x", fmt::format("{}", token)}));
      }
      Reports reports;
      world.turn(client.get(), reports);
      ASSERT_FALSE(client->lost()) << client->lost()->message;
      for (const auto& [token, times] : reports.ended) {
        EXPECT_EQ(times, 1);
        EXPECT_TRUE(first_time.insert(token).second) << "twice to one runner";
        recorded.insert(token);
      }
      if (rng.below(2) == 0) client->acknowledge();
    }
  }
  auto client = world.attach(99);
  Reports reports;
  world.run(client.get(), reports, [&] { return client->ready() && client->idle(); });
  for (const auto& [token, times] : reports.ended) recorded.insert(token);
  for (const auto& token : ran)
    EXPECT_TRUE(recorded.contains(std::stoll(token))) << token << " is lost";
  client->acknowledge();
  client->finish();
  world.run(client.get(), reports, [&] { return !world.agent; });
  client.reset();
  EXPECT_EQ(world.env.descriptors(), 0U);
}

TEST(AgentFaults, RunnersMayDieAtAnyMoment) {
  for (std::uint64_t seed = 0; seed < 100 && !::testing::Test::HasFailure(); ++seed) survive(seed);
}

/// Calls fail anywhere; whatever happens, nobody crashes, nobody hangs, and what the agent ran to
/// its end is told or stands in its journal.
TEST(AgentFaults, NoFaultLosesAnEnd) {
  for (std::uint64_t seed = 0; seed < 500 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    FakeWorld world;
    world.options.outlive = true;
    world.env.program = [&](const os::SpawnSpec&) {
      return takes(milliseconds(rng.below(50)), "out");
    };
    world.open();
    const auto fails = rng.below(40);
    std::uint64_t calls = 0;
    world.env.fault = [&](std::string_view call) -> std::optional<Error> {
      if (call == "wait" || call == "reap" || call == "signal") return std::nullopt;
      return ++calls % 40 == fails ? std::optional(Error{ErrorKind::full, "no space left"})
                                   : std::nullopt;
    };
    std::int64_t told = 0;
    Reports reports;
    for (std::int64_t epoch = 1; epoch < 6; ++epoch) {
      const auto client = world.attach(epoch);
      for (int turn = 0; turn < 20 && !client->lost(); ++turn) {
        if (turn % 4 == 0) client->send(launch_of(++told));
        world.turn(client.get(), reports);
      }
    }
    world.env.fault = nullptr;
    const auto client = world.attach(99);
    world.run(client.get(), reports, [&] { return client->ready() && client->idle(); });
    for (const auto& [token, times] : reports.started) EXPECT_GE(reports.ended[token], 1) << token;
  }
}

/// Runs one task without a runner, whose output is `text`, and returns what a later runner hears.
std::vector<exec::FromWorker> hear_after_flood(std::int64_t tasks, std::string text) {
  FakeWorld world;
  world.options.outlive = true;
  world.options.kept_most = 64 << 10;
  world.env.program = [&](const os::SpawnSpec&) { return takes(std::chrono::seconds(1), text); };
  world.open();
  auto client = world.attach(1);
  Reports reports;
  for (std::int64_t token = 1; token <= tasks; ++token) client->send(launch_of(token));
  world.run(client.get(), reports, [&] { return std::ssize(reports.started) == tasks; });
  client.reset();
  world.run(nullptr, reports, [&] { return world.env.now() > Mono(std::chrono::seconds(3)); });
  client = world.attach(2);
  std::vector<exec::FromWorker> heard;
  for (int turns = 0; turns < 100'000 && !(client->ready() && client->idle()); ++turns) {
    client->set_reading(true);
    world.turn(nullptr, reports);
    client->take_messages(heard);
  }
  return heard;
}

std::string metrics_text(int count, int names) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += fmt::format("::berth loss{}={}\n", i % names, i);
  return text;
}

TEST(AgentFaults, AFloodOfMetricsWithoutARunnerIsBoundedAndTheLastValueIsKept) {
  std::size_t metrics = 0, notes = 0, ends = 0;
  double last = 0;
  for (const auto& message : hear_after_flood(1, metrics_text(20'000, 1))) {
    if (const auto* metric = std::get_if<exec::Metric>(&message)) ++metrics, last = metric->value;
    if (const auto* note = std::get_if<exec::Notice>(&message))
      notes += note->text.find("metrics were left out") != std::string::npos ? 1 : 0;
    if (std::holds_alternative<exec::Ended>(message)) ++ends;
  }
  EXPECT_GT(metrics, 500U);
  EXPECT_LT(metrics, 3'000U);
  EXPECT_EQ(last, 20'000);
  EXPECT_EQ(notes, 1U);
  EXPECT_EQ(ends, 1U);
}

TEST(AgentFaults, EachNameAndEachAttemptOfAFloodKeepsItsLastValue) {
  std::map<std::pair<std::int64_t, std::string>, double> last;
  for (const auto& message : hear_after_flood(2, metrics_text(6'000, 3)))
    if (const auto* metric = std::get_if<exec::Metric>(&message))
      last[{metric->token.value, metric->name}] = metric->value;
  for (std::int64_t token = 1; token <= 2; ++token)
    for (int name = 0; name < 3; ++name)
      EXPECT_EQ((last[{token, fmt::format("loss{}", name)}]), 5'998 + (name + 2) % 3) << name;
}

TEST(AgentFaults, FewMetricsWithoutARunnerAreAllKept) {
  std::size_t metrics = 0, notes = 0;
  for (const auto& message : hear_after_flood(1, metrics_text(300, 1))) {
    metrics += std::holds_alternative<exec::Metric>(message) ? 1 : 0;
    notes += std::holds_alternative<exec::Notice>(message) ? 1 : 0;
  }
  EXPECT_EQ(metrics, 300U);
  EXPECT_EQ(notes, 0U);
}

TEST(AgentFaults, TheDirectoryOfADeadAgentIsRemovedWithTheFilesOfItsTasks) {
  FakeWorld world;
  world.open();
  const std::string directory = world.options.directory;
  ASSERT_TRUE(world.env.make_directory(commands_directory(directory), 0700));
  ASSERT_TRUE(world.env.replace_file(commands_directory(directory) + "/1", "echo", 0600));
  world.agent.reset();
  EXPECT_TRUE(forget_agent(world.env, directory));
  EXPECT_FALSE(world.env.status(directory));
}

}  // namespace
}  // namespace berth::agent
