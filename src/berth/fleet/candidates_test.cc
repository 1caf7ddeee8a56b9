#include "berth/fleet/fleet_testing.h"
#include "berth/fleet/generated_fleet.h"
#include "berth/fleet/sizing.h"

namespace berth::fleet {
namespace {

using testing::near;

class Fleets : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Reference, Fleets, ::testing::Values("f1", "f2", "f3", "f9"));

/// "S1 A0: 2 × batch 8, cost 4, ITL 1.5, TTFT 20" of every candidate that the reference has and of
/// every one that we have.
TEST_P(Fleets, EveryCandidateIsTheReferences) {
  const System system = testing::fleet(GetParam());
  const Candidates made = candidates(system, QueueModel::reference);
  const Json expected = testing::expected(GetParam())["candidates"];
  std::size_t count = 0;
  for (std::size_t s = 0; s < made.servers.size(); ++s) {
    const std::string& server = made.servers[s];
    count += expected.value(server, Json::object()).size();
    for (const Candidate& c : made.of(s)) {
      const std::string name =
          c.accelerator == Candidate::kNothing ? "-" : made.accelerators[c.accelerator];
      ASSERT_TRUE(expected.contains(server) && expected[server].contains(name))
          << server << " " << name;
      const Json& e = expected[server][name];
      EXPECT_EQ(c.replicas, e["numReplicas"]) << server << " " << name;
      EXPECT_EQ(c.batch, e["maxBatch"]) << server << " " << name;
      EXPECT_TRUE(near(c.cost, e["cost"])) << server << " " << name << " " << c.cost << " " << e;
      EXPECT_TRUE(near(c.itl_ms, e["itlAverage"]))
          << server << " " << name << " " << c.itl_ms << " " << e;
      EXPECT_TRUE(near(c.ttft_ms, e["ttftAverage"]))
          << server << " " << name << " " << c.ttft_ms << " " << e;
    }
  }
  EXPECT_EQ(made.all.size(), count);
  EXPECT_GT(count, 10U);
}

/// What is not asked for when the time is over is what the closed form says, also where it refuses.
TEST(Candidates, WithoutTimeAreTheClosedForms) {
  System system = testing::generated_fleet(5, 40, 4);
  for (auto& [name, service_class] : system.classes)
    for (auto& [model, target] : service_class.targets)
      target.percentiles.ttft_ms[3] = 0.3 * target.ttft_ms;
  const Candidates closed_form = candidates(system, QueueModel::calibrated);
  Execution execution;
  execution.rate_limit = [](const RateQuestion& question) { return question.estimate_per_s / 2; };
  const Candidates asked = candidates(system, QueueModel::calibrated, execution);
  EXPECT_FALSE(asked.stopped);
  EXPECT_GT(asked.all.size(), closed_form.all.size()) << "of those that the closed form refuses";
  execution.stop = [] { return true; };
  const Candidates stopped = candidates(system, QueueModel::calibrated, execution);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.refusals, closed_form.refusals);
  ASSERT_EQ(stopped.all.size(), closed_form.all.size());
  for (std::size_t i = 0; i < stopped.all.size(); ++i) {
    EXPECT_EQ(stopped.all[i].replicas, closed_form.all[i].replicas);
    EXPECT_FALSE(stopped.all[i].is_rate_asked_for);
  }
  EXPECT_TRUE(solve(system, stopped, system.options, execution).proof.stopped);
}

}  // namespace
}  // namespace berth::fleet
