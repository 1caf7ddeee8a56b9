// Instances on an EC2 in memory: each outcome by name, and lives of runners that are killed, with a
// service that throttles, loses answers and is away.
#include "berth/remote/ec2/ec2_instances.h"

#include <gtest/gtest.h>

#include <deque>

#include "berth/testing/ec2.h"

namespace berth::remote {
namespace {

constexpr std::int64_t kGiB = 1LL << 30;

/// A runner, the service, and the transports between them.
struct World {
  explicit World(std::uint64_t seed = 1) : env(seed), ec2(env, seed), chance(seed) {
    settings.name = "cloud";
    settings.image = "ami-1";
    settings.types = {{"small", 4, 8 * kGiB, 0, "", 0, 60'000},  // a cent a minute
                      {"large", 16, 64 * kGiB, 0, "", 0, 300'000}};
    settings.most = 4;
    for (const auto& type : settings.types) ec2.prices[type.name] = type.price;
  }

  void start() {
    api = std::make_unique<Ec2Api>(env, **load_cloud(*os::posix_env()),
                                   std::make_unique<FakeCalls>(ec2), "https://ec2");
    instances = std::make_unique<Ec2Instances>(
        env, *api, settings, Ec2Instances::Owner{"digits-3", "here", {{"team", "vision"}}}, "/book",
        [this](const Ec2Machine& machine, Duration lease) {
          renewals.emplace_back(env.now() + 1ms * chance.below(3000), machine.id, lease);
        });
    ASSERT_TRUE(instances->open());
  }
  /// As kill -9: nothing is said to anybody.
  void kill() {
    instances.reset();
    api.reset();
    renewals.clear();
  }

  void pass(Duration time) {
    for (const Mono end = env.now() + time; env.now() < end;) {
      ec2.advance();
      if (instances) turn();
      const Mono next = instances ? std::max(instances->next(), env.now() + 1ms) : env.now() + 5s;
      (void)env.loop().turn(std::min(end, next));
    }
    ec2.advance();
  }
  bool pass_until(const std::function<bool()>& done, Duration most = 20min) {
    for (const Mono end = env.now() + most; env.now() < end; pass(1s))
      if (done()) return true;
    return done();
  }

  void turn() {
    instances->step();
    for (const auto& machine : instances->machines())
      if (machine.phase == Ec2Machine::Phase::up && transports && answers) up.insert(machine.id);
    for (const auto& id : up) instances->ready(id);
    while (!renewals.empty() && std::get<0>(renewals.front()) <= env.now()) {
      const auto [at, id, lease] = renewals.front();
      renewals.pop_front();
      FakeInstance* one = ec2.find(id);
      if (one != nullptr && transports) one->until = std::max(one->until, env.wall() + lease);
      instances->renewed(id, transports && chance.uniform() >= deaf);
    }
  }
  std::size_t ready() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        instances->machines(), [](const Ec2Machine& machine) { return machine.ready; }));
  }

  os::FakeEnv env;
  FakeEc2 ec2;
  Rng chance;
  Ec2Settings settings;
  std::unique_ptr<Ec2Api> api;
  std::unique_ptr<Ec2Instances> instances;
  std::deque<std::tuple<Mono, std::string, Duration>> renewals;
  std::set<std::string> up;
  bool transports = true, answers = true;
  double deaf = 0;  // renewals whose success is not heard of
};

TEST(Ec2Instances, AllocateStartsTheCheapestThatHasRoom) {
  World world;
  world.start();
  world.pass(3s);
  EXPECT_EQ(world.instances->want(wish(3)).kind, ErrorKind::busy);
  ASSERT_TRUE(world.pass_until([&] { return world.ready() == 1; }));
  EXPECT_EQ(world.instances->machines()[0].type.name, "small");
  EXPECT_EQ(world.instances->machines()[0].address, "10.0.0.1");
  EXPECT_NE(world.ec2.instances[0].tags.find("<value>digits-3</value>"), std::string::npos);
  EXPECT_NE(world.ec2.instances[0].tags.find("<key>berth:label:team</key><value>vision</value>"),
            std::string::npos);
  EXPECT_EQ(world.instances->want(wish(64)).kind, ErrorKind::impossible);
  EXPECT_EQ(world.instances->want(wish(1, 1, 1)).kind, ErrorKind::impossible);
}

TEST(Ec2Instances, GrowsByTheWidthAndUpToTheMost) {
  World world;
  world.settings.idle = 1h;
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4, 3));
  ASSERT_TRUE(world.pass_until([&] { return world.ready() >= 1; }));
  world.pass(30s);
  EXPECT_EQ(world.ready(), 3U);
  for (int i = 0; i < 5; ++i) (void)world.instances->want(wish(4, 100));
  world.pass(60s);
  EXPECT_EQ(world.instances->machines().size(), 4U);
  EXPECT_EQ(world.instances->want(wish(4)).kind, ErrorKind::busy);
}

TEST(Ec2Instances, ShrinksWhenNobodyNeedsOne) {
  World world;
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4, 2));
  ASSERT_TRUE(world.pass_until([&] { return world.ready() == 2; }));
  const std::string used = world.instances->machines()[0].id;
  world.instances->use(used, true);
  world.pass(5min);
  ASSERT_EQ(world.instances->machines().size(), 1U);
  EXPECT_EQ(world.instances->machines()[0].id, used);
  EXPECT_EQ(world.ec2.alive(), 1);
  world.instances->use(used, false);
  world.pass(3min);
  EXPECT_EQ(world.ec2.alive(), 0);
}

TEST(Ec2Instances, OneThatEc2TakesBackDrainsAndIsEnded) {
  World world;
  world.settings.spot = true;
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4));
  ASSERT_TRUE(world.pass_until([&] { return world.ready() == 1; }));
  const std::string id = world.instances->machines()[0].id;
  world.instances->use(id, true);
  world.pass(20s);
  world.ec2.find(id)->interrupted = true;
  ASSERT_TRUE(
      world.pass_until([&] { return !world.instances->machines()[0].draining.empty(); }, 30s));
  EXPECT_EQ(world.instances->machines()[0].draining, "EC2 reclaims it");
  EXPECT_EQ(world.ec2.find(id)->state, "running");  // its tasks may still end
  world.instances->use(id, false);
  ASSERT_TRUE(world.pass_until([&] { return world.instances->machines().empty(); }, 60s));
  EXPECT_EQ(world.ec2.alive(), 0);
}

TEST(Ec2Instances, TheBudgetEndsThemInTime) {
  World world;
  world.settings.budget = 20;
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4, 2));
  ASSERT_TRUE(world.pass_until([&] { return world.ready() == 2; }));
  for (const auto& machine : world.instances->machines()) world.instances->use(machine.id, true);
  bool drained = false;
  ASSERT_TRUE(world.pass_until(
      [&] {
        for (const auto& machine : world.instances->machines())
          drained = drained || machine.draining == "the budget is used up";
        return world.ec2.alive() == 0;
      },
      2h));
  EXPECT_TRUE(drained);
  EXPECT_GT(world.ec2.cents(), 15);
  EXPECT_LE(world.ec2.cents(), 20);
  const Error refused = world.instances->want(wish(4));
  EXPECT_EQ(refused.kind, ErrorKind::impossible);
  EXPECT_NE(refused.message.find("budget of 20 cents"), std::string::npos) << refused.message;
}

TEST(Ec2Instances, WrongCredentialsAreToldAndNothingIsStarted) {
  World world;
  world.ec2.denied = {"DescribeInstances"};
  world.start();
  world.pass(10s);
  EXPECT_EQ(world.instances->want(wish(4)).kind, ErrorKind::denied);
  World other;
  other.ec2.denied = {"RunInstances"};
  other.start();
  other.pass(3s);
  (void)other.instances->want(wish(4));
  other.pass(5s);
  EXPECT_EQ(other.instances->want(wish(4)).kind, ErrorKind::denied);
  EXPECT_EQ(other.ec2.runs, 0);
}

TEST(Ec2Instances, ThrottlingAndLostAnswersStartNoneTwice) {
  World world(5);
  world.ec2.throttled = 0.5;
  world.ec2.lost = 0.4;
  world.start();
  ASSERT_TRUE(world.pass_until([&] {
    (void)world.instances->want(wish(4));
    return world.ready() == 1;
  }));
  EXPECT_EQ(world.ec2.runs, 1);
}

TEST(Ec2Instances, AnotherTypeWhereThereIsNoCapacity) {
  World world;
  world.ec2.no_capacity = {"small"};
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4));
  ASSERT_TRUE(world.pass_until([&] { return world.ready() == 1; }));
  EXPECT_EQ(world.instances->machines()[0].type.name, "large");
  World none;
  none.ec2.no_capacity = {"small", "large"};
  none.start();
  none.pass(3s);
  (void)none.instances->want(wish(4));
  none.pass(5s);
  const Error busy = none.instances->want(wish(4));
  EXPECT_EQ(busy.kind, ErrorKind::busy);
  EXPECT_NE(busy.message.find("InsufficientInstanceCapacity"), std::string::npos) << busy.message;
}

TEST(Ec2Instances, OneThatNeverAnswersIsEnded) {
  World world;
  world.answers = false;
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4));
  world.pass(12min);
  EXPECT_EQ(world.ec2.alive(), 0);
  EXPECT_NE(world.instances->trouble().find("has not answered by ssh"), std::string::npos);
}

TEST(Ec2Instances, NamedOnesAreStartedAndStoppedAndThoseThatRanAreLeft) {
  World world;
  world.settings.image.clear();
  world.settings.instances = {"i-00000001", "i-00000002"};
  for (const char* id : {"i-00000001", "i-00000002"})
    world.ec2.instances.push_back(
        {.id = id, .token = "", .type = "small", .state = "stopped", .guarded = false});
  world.ec2.instances[1].state = "running";
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4, 2));
  ASSERT_TRUE(world.pass_until([&] { return world.ready() == 2; }));
  world.kill();
  world.start();
  world.pass(3s);
  world.instances->end_all();
  ASSERT_TRUE(world.pass_until([&] { return world.instances->over(); }));
  world.pass(1min);
  EXPECT_EQ(world.ec2.instances[0].state, "stopped");
  EXPECT_EQ(world.ec2.instances[1].state, "running");
}

TEST(Ec2Instances, KilledRunnersLeaveNothingThatDoesNotEndItself) {
  World world;
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4, 4));
  world.pass(400ms);
  world.kill();
  world.pass(15min);
  EXPECT_EQ(world.ec2.alive(), 0);
}

TEST(Ec2Instances, AnInstanceOfALostBookIsFoundByItsTags) {
  World world;
  world.start();
  world.pass(3s);
  (void)world.instances->want(wish(4));
  ASSERT_TRUE(world.pass_until([&] { return world.ready() == 1; }));
  world.kill();
  ASSERT_TRUE(world.env.remove_file("/book"));
  world.start();
  ASSERT_TRUE(world.pass_until([&] { return world.ready() == 1; }));
  world.instances->end_all();
  ASSERT_TRUE(world.pass_until([&] { return world.instances->over(); }));
  EXPECT_EQ(world.ec2.alive(), 0);
}

/// One life: wants, work, faults of the service, kills and resumes; then an end, or none.
void live(std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  World world(seed);
  Rng& chance = world.chance;
  world.settings.most = 1 + chance.below(4);
  if (chance.below(2) == 0) world.settings.budget = 5 + static_cast<std::int64_t>(chance.below(60));
  world.settings.lease = 1min * (2 + chance.below(10));
  world.settings.spot = chance.below(3) == 0;
  world.ec2.throttled = chance.uniform() * 0.5;
  world.ec2.lost = chance.uniform() * 0.5;
  world.ec2.broken = chance.uniform() * 0.2;
  world.ec2.start = 1s * chance.below(90);
  world.ec2.hidden = 1s * chance.below(20);
  world.deaf = chance.uniform() * 0.4;
  world.start();
  for (int event = 0; event < 60; ++event) {
    switch (chance.below(12)) {
      case 0:
        world.kill();
        world.pass(1s * chance.below(400));
        world.start();
        break;
      case 1: world.ec2.away = chance.below(2) == 0; break;
      case 2: world.transports = chance.below(3) != 0; break;
      case 3:
        for (auto& each : world.ec2.instances) each.interrupted |= chance.below(8) == 0;
        break;
      case 4:
        world.ec2.no_capacity =
            chance.below(2) == 0 ? std::set<std::string>{"small"} : std::set<std::string>{};
        break;
      case 5:
      case 6:
        for (const auto& machine :
             std::vector(world.instances->machines().begin(), world.instances->machines().end()))
          world.instances->use(machine.id, machine.ready && chance.below(2) == 0);
        break;
      default: {
        const auto cores = 1 + static_cast<std::int64_t>(chance.below(8));
        const auto width = 1 + static_cast<std::int64_t>(chance.below(6));
        (void)world.instances->want(wish(cores, width));
      }
    }
    world.pass(1ms * chance.below(60'000));
    ASSERT_LE(world.ec2.alive(), static_cast<std::ptrdiff_t>(world.settings.most));
    // One billing step of the dearest instance, at most.
    if (world.settings.budget) {
      ASSERT_LE(world.ec2.cents(), static_cast<double>(*world.settings.budget) + 5);
    }
  }
  if (chance.below(3) == 0) {
    world.kill();
    world.pass(30min);
  } else {
    world.ec2.away = false;
    world.instances->end_all();
    ASSERT_TRUE(world.pass_until([&] { return world.instances->over(); }, 1h));
  }
  ASSERT_EQ(world.ec2.alive(), 0) << "left running";
  ASSERT_LE(world.ec2.runs, static_cast<int>(world.ec2.tokens.size()));
}

TEST(Ec2Instances, NothingIsLeftRunningInAnyLife) {
  const char* one = std::getenv("BERTH_SEED");
  const std::uint64_t first = one != nullptr ? std::stoull(one) : 1;
  for (std::uint64_t seed = first; seed < first + (one != nullptr ? 1 : 400); ++seed) {
    live(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace berth::remote
