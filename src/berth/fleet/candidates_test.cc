#include "berth/fleet/fleet_testing.h"
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

}  // namespace
}  // namespace berth::fleet
