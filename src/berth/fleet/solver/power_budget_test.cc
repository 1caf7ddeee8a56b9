// Plans within a power budget: against brute force on small fleets, and cases by name.
#include "berth/testing/fleet.h"
#include "berth/testing/generated_fleet.h"

namespace berth::fleet {
namespace {

/// Unserved by priority, then the value: lexicographically least over every choice of candidates
/// within the capacities and the power budget.
class EveryPlan {
 public:
  using Score = std::pair<std::map<int, int>, double>;

  EveryPlan(const System& system, const Candidates& made, double budget_w)
      : made_(made), left_w_(budget_w) {
    for (const auto& type : made.types) left_.push_back(system.capacities.at(type).count);
    for (const int priority : made.priority) now_.first[priority] = 0;
    descend(0);
  }
  const Score& best() const { return best_; }

 private:
  void descend(std::size_t s) {
    if (s == made_.servers.size()) {
      if (best_.first.empty() || now_ < best_) best_ = now_;
      return;
    }
    for (const Candidate& c : made_.of(s)) {
      std::int64_t none = 0;
      const bool is_idle = c.accelerator == Candidate::kNothing;
      std::int64_t& left = is_idle ? none : left_[made_.type_of[c.accelerator]];
      if (c.units() > left || c.watts > left_w_) continue;
      const Score before = now_;
      left -= c.units(), left_w_ -= c.watts, now_.second += c.value;
      descend(s + 1);
      left += c.units(), left_w_ += c.watts, now_ = before;
    }
    ++now_.first[made_.priority[s]];
    descend(s + 1);
    --now_.first[made_.priority[s]];
  }

  const Candidates& made_;
  std::vector<std::int64_t> left_;
  double left_w_ = 0;
  Score now_, best_;
};

System few_servers(std::uint64_t seed, double part, QueueModel model) {
  System system = testing::generated_fleet(seed, 1 + static_cast<int>(seed % 5), 12);
  system.options.model = model;
  testing::limit_to(system, part, candidates(system, model));
  return system;
}

TEST(PowerBudget, IsWhatBruteForceFinds) {
  const char* wanted = std::getenv("BERTH_BRUTE_FLEETS");
  const auto fleets = static_cast<std::uint64_t>(wanted == nullptr ? 200 : std::atoi(wanted));
  Rng rng(5);
  int cut = 0, dearer = 0;
  for (std::uint64_t i = 0; i < fleets; ++i) {
    System system = few_servers(i, std::array{0.6, 1.0, 3.0}[rng.below(3)],
                                i % 2 == 0 ? QueueModel::reference : QueueModel::calibrated);
    const Candidates made = candidates(system, system.options.model);
    const Plan without = solve(system, made, system.options);
    const double budget_w = without.watts * (0.2 + 0.9 * rng.uniform());
    system.options.power_budget_w = budget_w;
    const Plan plan = solve(system, made, system.options);
    const auto [unserved, value] = EveryPlan(system, made, budget_w).best();
    ASSERT_EQ(plan.proof.unserved, unserved) << "fleet " << i;
    ASSERT_EQ(plan.proof.unserved_bound, unserved) << "fleet " << i;
    ASSERT_NEAR(plan.proof.value, value, 1e-6) << "fleet " << i;
    ASSERT_NEAR(plan.proof.bound, value, 1e-6) << "fleet " << i;
    ASSERT_LE(plan.watts, budget_w) << "fleet " << i;
    for (const TypeTotal& total : plan.totals) ASSERT_LE(total.used, *total.limit) << "fleet " << i;
    cut += unserved > without.proof.unserved;
    dearer += unserved == without.proof.unserved && value > without.proof.value + 1e-6;
  }
  EXPECT_GT(cut, static_cast<int>(fleets / 5));
  EXPECT_GT(dearer, static_cast<int>(fleets / 20));
}

TEST(PowerBudget, SaysWhoGoesWithoutForPowerAndWhatOneMoreIsWorth) {
  System system = testing::generated_fleet(3, 40, 12);
  const Plan without = plan(system);
  ASSERT_FALSE(without.power.has_value());
  ASSERT_EQ(plan_json(without, nullptr).find("\"power\""), std::string::npos);
  system.options.power_budget_w = 0.5 * without.watts;
  const Plan half = plan(system);
  EXPECT_LE(half.watts, 0.5 * without.watts);
  ASSERT_TRUE(half.power.has_value());
  EXPECT_EQ(half.power->limit_w, 0.5 * without.watts);
  EXPECT_GT(half.power->shadow_price, 0);
  int without_power = 0;
  for (const auto& [name, server] : half.servers) {
    if (server.why == Why::served || server.why == Why::no_candidate) continue;
    ++without_power;  // there is more than enough of every type
    EXPECT_EQ(server.why, Why::power) << name << ": " << server.reason;
    EXPECT_TRUE(server.reason.starts_with("no power: ")) << server.reason;
    EXPECT_NE(server.reason.find("one more kW is worth "), std::string::npos) << server.reason;
  }
  EXPECT_GT(without_power, 0);
  const Json json = *parse_json(plan_json(half, nullptr));
  EXPECT_EQ(json["power"]["limit"].get<double>(), 0.5 * without.watts);
  EXPECT_EQ(json["power"]["watts"].get<double>(), half.watts);
  EXPECT_GT(json["power"]["shadowPrice"].get<double>(), 0);
}

TEST(PowerBudget, ServesAllWhereAllCanBeServed) {
  System system = testing::generated_fleet(9, 30, 20);
  const Candidates made = candidates(system, QueueModel::calibrated);
  double least_w = 0;
  for (std::size_t s = 0; s < made.servers.size(); ++s)
    least_w += std::ranges::min(made.of(s), {}, &Candidate::watts).watts;
  system.options.power_budget_w = least_w + 1;
  EXPECT_EQ(plan(system).proof.unserved, (std::map<int, int>{{1, 0}, {5, 0}, {10, 0}, {100, 0}}));
}

TEST(PowerBudget, OneThatIsEnoughChangesNothing) {
  System system = testing::generated_fleet(3, 40, 12);
  const Plan without = plan(system);
  system.options.power_budget_w = without.watts;
  const Plan with = plan(system);
  EXPECT_EQ(with.power->shadow_price, 0);
  for (const auto& [name, server] : without.servers)
    EXPECT_EQ(with.servers.at(name).allocation, server.allocation) << name;
  EXPECT_EQ(with.proof.bound, without.proof.bound);
}

TEST(PowerBudget, OfNothingServesOnlyWhatDrawsNothing) {
  System system = testing::generated_fleet(3, 40, 12);
  system.options.power_budget_w = 0;
  const Plan made = plan(system);
  EXPECT_EQ(made.watts, 0);
  for (const auto& [name, server] : made.servers)
    EXPECT_TRUE(server.allocation.replicas == 0) << name;
}

TEST(PowerBudget, SameBytesEachTime) {
  System system = testing::generated_fleet(8, 200, 12);
  testing::limit_to(system, 0.8, candidates(system, QueueModel::calibrated));
  system.options.power_budget_w = 0.7 * plan(system).watts;
  Execution execution;
  execution.iteration_limit = 2'000'000;
  const std::string first = plan_json(plan(system, execution), nullptr);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(plan_json(plan(system, execution), nullptr), first);
}

TEST(PowerBudget, IsReadWrittenSetAndChecked) {
  System system = testing::generated_fleet(3, 2, 3);
  EXPECT_EQ(write_document(system).find("powerBudget"), std::string::npos);
  ASSERT_TRUE(set_value(system, "optimizer.powerBudget", 20'000));
  const System read = testing::read({{"w", write_document(system)}});
  EXPECT_EQ(read.options.power_budget_w, 20'000);
  EXPECT_EQ(read, system);
  const Status negative = set_value(system, "Optimizer.PowerBudget", -1);
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().message,
            "Optimizer.PowerBudget: powerBudget: expected at least 0, got -1");
  EXPECT_EQ(system.options.power_budget_w, 20'000);
  for (const char* other : {R"("heterogeneous": true)", R"("solver": "greedy")"}) {
    const auto refused = read_documents(std::array{
        Document{"f", fmt::format(R"({{"optimizer": {{{}, "powerBudget": 5}}}})", other)}});
    ASSERT_FALSE(refused) << other;
    EXPECT_NE(refused.error().message.find(
                  "f: optimizer.powerBudget: supported only by the solver optimal"),
              std::string::npos)
        << refused.error().message;
  }
}

}  // namespace
}  // namespace berth::fleet
