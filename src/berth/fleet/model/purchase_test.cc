// Capacity that is bought in several ways: against brute force on small fleets, and cases by name.
#include "berth/fleet/day/day.h"
#include "berth/testing/fleet.h"
#include "berth/testing/generated_fleet.h"

namespace berth::fleet {
namespace {

/// Unserved by priority, then what the plan adds to the bill and what its changes cost: least over
/// every choice of candidates, each wholly of spot or not.
class EveryPurchase {
 public:
  using Score = std::pair<std::map<int, int>, double>;

  EveryPurchase(const System& system, const Candidates& made)
      : system_(system), made_(made), used_(made.types.size()), spot_(made.types.size()) {
    for (const int priority : made.priority) now_.first[priority] = 0;
    descend(0);
  }
  const Score& best() const { return best_; }

 private:
  const Capacity& capacity(std::size_t type) const {
    return system_.capacities.at(made_.types[type]);
  }
  std::int64_t count(std::size_t type, PurchaseKind kind) const {
    const auto& kinds = capacity(type).purchases;
    return kinds.contains(kind) ? kinds.at(kind).count : 0;
  }

  void leaf() {
    Score score = now_;
    for (std::size_t type = 0; type < used_.size(); ++type) {
      const auto& kinds = capacity(type).purchases;
      if (kinds.empty()) continue;
      const auto further = used_[type] - count(type, PurchaseKind::reserved);
      if (further > 0)
        score.second += static_cast<double>(further) * kinds.at(PurchaseKind::on_demand).cost;
      if (spot_[type] > 0)
        score.second += static_cast<double>(spot_[type]) * kinds.at(PurchaseKind::spot).cost;
    }
    if (best_.first.empty() || score < best_) best_ = score;
  }

  void descend(std::size_t s) {
    if (s == made_.servers.size()) return leaf();
    const Server& server = system_.servers.at(made_.servers[s]);
    for (const Candidate& c : made_.of(s)) {
      const Score before = now_;
      if (c.accelerator == Candidate::kNothing) {
        now_.second += c.value;
        descend(s + 1);
        now_ = before;
        continue;
      }
      const std::size_t type = made_.type_of[c.accelerator];
      const bool has_kinds = !capacity(type).purchases.empty();
      Allocation to;
      to.accelerator = made_.accelerators[c.accelerator];
      to.replicas = c.replicas;
      to.cost = c.cost;
      now_.second += has_kinds
                         ? transition_value(server.current, to, QueueModel::calibrated) - c.cost
                         : c.value;
      for (const bool is_spot : {false, true}) {
        if (is_spot && !server.spot) continue;
        auto& used = (is_spot ? spot_ : used_)[type];
        const auto most = is_spot ? count(type, PurchaseKind::spot)
                                  : capacity(type).count - count(type, PurchaseKind::spot);
        if (used + c.units() > most) continue;
        used += c.units();
        descend(s + 1);
        used -= c.units();
      }
      now_ = before;
    }
    ++now_.first[made_.priority[s]];
    descend(s + 1);
    --now_.first[made_.priority[s]];
  }

  const System& system_;
  const Candidates& made_;
  std::vector<std::int64_t> used_, spot_;
  Score now_, best_;
};

/// The units of each type in up to three kinds; some types in one that has no price of its own.
void buy(System& system, Rng& rng) {
  for (auto& [type, capacity] : system.capacities) {
    if (rng.below(4) == 0) continue;
    capacity.purchases.clear();
    const double cost = system.accelerators.at(type).cost;
    const auto part = [&] {
      return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(capacity.count) + 1));
    };
    if (rng.below(3) != 0) capacity.purchases[PurchaseKind::reserved] = {part(), 0.6 * cost};
    if (rng.below(3) != 0)
      capacity.purchases[PurchaseKind::on_demand] = {part(), cost * (0.8 + 0.4 * rng.uniform())};
    if (rng.below(3) != 0)
      capacity.purchases[PurchaseKind::spot] = {part(), cost * (0.2 + 0.4 * rng.uniform())};
    if (capacity.purchases.empty()) continue;
    capacity.count = 0;
    for (const auto& [_, purchase] : capacity.purchases) capacity.count += purchase.count;
  }
  for (auto& [_, server] : system.servers) server.spot = rng.below(2) == 0;
}

TEST(Purchase, IsWhatBruteForceFinds) {
  const char* wanted = std::getenv("BERTH_BRUTE_FLEETS");
  const auto fleets = static_cast<std::uint64_t>(wanted == nullptr ? 100 : std::atoi(wanted));
  Rng rng(6);
  int on_spot = 0, in_steps = 0, unserved_some = 0;
  for (std::uint64_t i = 0; i < fleets; ++i) {
    System system = testing::generated_fleet(i, 1 + static_cast<int>(i % 5), 12);
    system.options.model = i % 2 == 0 ? QueueModel::reference : QueueModel::calibrated;
    const Candidates made = candidates(system, system.options.model);
    testing::limit_to(system, std::array{1.0, 2.0, 5.0}[rng.below(3)], made);
    buy(system, rng);
    ASSERT_TRUE(check(system)) << check(system).error().message;
    const Plan plan = solve(system, made, system.options);
    const auto [unserved, value] = EveryPurchase(system, made).best();
    ASSERT_EQ(plan.proof.unserved, unserved) << "fleet " << i;
    ASSERT_EQ(plan.proof.unserved_bound, unserved) << "fleet " << i;
    ASSERT_NEAR(plan.proof.value, value, 1e-6) << "fleet " << i;
    ASSERT_NEAR(plan.proof.bound, value, 1e-6) << "fleet " << i;
    double servers = 0, types = 0, unused = 0;
    for (const auto& [name, server] : plan.servers) {
      servers += server.allocation.cost;
      on_spot += server.is_spot;
      ASSERT_TRUE(!server.is_spot || system.servers.at(name).spot) << "fleet " << i;
    }
    for (const TypeTotal& total : plan.totals) {
      types += total.cost;
      std::int64_t used = 0;
      for (const auto& [kind, bought] : total.purchases) {
        used += bought.used;
        ASSERT_LE(bought.used, bought.limit) << "fleet " << i;
        if (kind == PurchaseKind::reserved)
          unused += system.capacities.at(total.type).purchases.at(kind).cost *
                    static_cast<double>(bought.limit - bought.used);
      }
      if (total.purchases.empty()) continue;
      ASSERT_EQ(used, total.used) << "fleet " << i;
      const auto at = total.purchases.find(PurchaseKind::reserved);
      in_steps += at != total.purchases.end() && at->second.used > 0 &&
                  total.purchases.contains(PurchaseKind::on_demand) &&
                  total.purchases.at(PurchaseKind::on_demand).used > 0;
    }
    ASSERT_NEAR(plan.cost, types, 1e-6) << "fleet " << i;
    ASSERT_NEAR(plan.cost, servers + unused, 1e-6) << "fleet " << i;
    unserved_some += std::ranges::any_of(unserved, [](const auto& of) { return of.second > 0; });
  }
  EXPECT_GT(on_spot, static_cast<int>(fleets / 10));
  EXPECT_GT(in_steps, static_cast<int>(fleets / 20));
  EXPECT_GT(unserved_some, static_cast<int>(fleets / 20));
}

System one_type(bool allows_spot) {
  System system = testing::generated_fleet(3, 6, 1);
  for (auto& [_, server] : system.servers) {
    server.spot = allows_spot;
    server.current = Allocation{.accelerator = "", .load = server.current.load, .parts = {}};
  }
  std::int64_t used = plan(system).totals.at(0).used;
  system.capacities.begin()->second = {used + 100,
                                       {{PurchaseKind::reserved, {used / 2, 60}},
                                        {PurchaseKind::on_demand, {used + 100 - used / 2 - 2, 100}},
                                        {PurchaseKind::spot, {2, 35}}}};
  return system;
}

TEST(Purchase, ReservedFirstAndSpotOnlyWhereItIsAllowed) {
  System system = one_type(false);
  const Plan none = plan(system);
  const TypeTotal& total = none.totals.at(0);
  ASSERT_GT(total.used, 4);
  EXPECT_EQ(total.purchases.at(PurchaseKind::reserved).used, total.used / 2);
  EXPECT_EQ(total.purchases.at(PurchaseKind::on_demand).used, total.used - total.used / 2);
  EXPECT_EQ(total.purchases.at(PurchaseKind::spot).used, 0);
  EXPECT_NEAR(none.cost,
              60.0 * static_cast<double>(total.used / 2) +
                  100.0 * static_cast<double>(total.used - total.used / 2),
              1e-9);
  EXPECT_NEAR(total.purchases.at(PurchaseKind::reserved).shadow_price, 100, 1e-6);
  EXPECT_EQ(total.purchases.at(PurchaseKind::on_demand).shadow_price, 0);
  const Plan some = plan(one_type(true));
  EXPECT_LT(some.cost, none.cost);
  EXPECT_GT(some.totals.at(0).purchases.at(PurchaseKind::spot).used, 0);
  const Json json = *parse_json(plan_json(some, nullptr));
  EXPECT_EQ(json["totals"][0]["purchase"][2]["kind"], "spot");
  EXPECT_EQ(json["totals"][0]["purchase"][0]["limit"], total.used / 2);
  EXPECT_NE(plan_json(some, nullptr).find("\"spot\":true"), std::string::npos);
}

TEST(Purchase, ReservedIsPaidForWhereNobodyUsesIt) {
  System system = one_type(false);
  for (auto& [_, server] : system.servers) server.current.load = {}, server.min_replicas = 0;
  const auto& reserved = system.capacities.begin()->second.purchases.at(PurchaseKind::reserved);
  const Plan idle = plan(system);
  EXPECT_EQ(idle.cost, reserved.cost * static_cast<double>(reserved.count));
  EXPECT_EQ(idle.totals.at(0).used, 0);
  EXPECT_EQ(idle.proof.value, 0);
}

Result<Reading> read_capacity(const std::string& capacity) {
  return read_documents(
      std::array{Document{"f", fmt::format(R"({{"capacityData": {{"count": [{}]}}}})", capacity)}});
}

TEST(Purchase, IsReadWrittenSetAndChecked) {
  System system = one_type(true);
  const System read = testing::read({{"w", write_document(system)}});
  EXPECT_EQ(read, system);
  const std::string type = system.capacities.begin()->first;
  const std::int64_t before = system.capacities.at(type).count;
  ASSERT_TRUE(set_value(system, "capacity." + type + ".Spot", 5));
  ASSERT_TRUE(set_value(system, "capacity." + type + ".on-demand.cost", 7));
  EXPECT_EQ(system.capacities.at(type).count, before + 3);
  EXPECT_EQ(system.capacities.at(type).purchases.at(PurchaseKind::spot).count, 5);
  EXPECT_EQ(system.capacities.at(type).purchases.at(PurchaseKind::on_demand).cost, 7);
  EXPECT_FALSE(set_value(system, "capacity." + type + ".spot", -2));
  EXPECT_FALSE(set_value(system, "capacity." + type, 9));

  const auto summed = read_capacity(
      R"({"type": "A", "purchase": [{"kind": "Spot", "count": 2, "cost": 1}, {"kind": "reserved", "count": 3, "cost": 2}]})");
  ASSERT_TRUE(summed) << summed.error().message;
  EXPECT_EQ(summed->system.capacities.at("A").count, 5);
  for (
      const auto& [text, message] :
      {std::pair{
           R"({"type": "A", "count": 9, "purchase": [{"kind": "spot", "count": 2, "cost": 1}]})",
           "count: 9, the kinds of purchase have 2"},
       {R"({"type": "A", "purchase": [{"kind": "spot", "count": 2}]})",
        "expected a kind and a cost"},
       {R"({"type": "A", "purchase": [{"kind": "spot", "count": 2, "cost": -1}]})",
        "purchase of spot: cost: expected at least 0, got -1"},
       {R"({"type": "A", "purchase": [{"kind": "leased", "count": 2, "cost": 1}]})",
        "expected one of reserved, on-demand, spot"},
       {R"({"type": "A", "purchase": [{"kind": "spot", "count": 2, "cost": 1}, {"kind": "spot", "count": 2, "cost": 1}]})",
        "'spot' is given twice"}}) {
    const auto refused = read_capacity(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().message.find(message), std::string::npos) << refused.error().message;
  }
  system.options.solver = Solver::greedy;
  const Status status = check(system);
  ASSERT_FALSE(status);
  EXPECT_TRUE(
      status.error().message.starts_with("capacity with kinds of purchase: supported only"));
}

TEST(Purchase, ADayRefusesWhatItWouldLeaveOut) {
  System system = one_type(true);
  Profile profile(2);
  profile[0].length_s = profile[1].length_s = profile[1].start_s = 3600;
  const Status kinds = check_day(system, profile, {});
  ASSERT_FALSE(kinds);
  EXPECT_NE(kinds.error().message.find("kinds of purchase"), std::string::npos);
  system.capacities.begin()->second.purchases.clear();
  ASSERT_TRUE(check_day(system, profile, {})) << check_day(system, profile, {}).error().message;
  system.options.power_budget_w = 5000;
  const Status power = check_day(system, profile, {});
  ASSERT_FALSE(power);
  EXPECT_NE(power.error().message.find("powerBudget"), std::string::npos);
}

}  // namespace
}  // namespace berth::fleet
