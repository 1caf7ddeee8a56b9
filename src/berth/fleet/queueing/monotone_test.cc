// More load, tighter targets, dearer accelerators and less capacity never make the optimum better,
// nor a candidate smaller. BERTH_MONOTONE_FLEETS=1000 is the long form.
#include <cmath>

#include "berth/fleet/simulate/simulated_limit.h"
#include "berth/testing/fleet.h"
#include "berth/testing/generated_fleet.h"

namespace berth::fleet {
namespace {

constexpr double kSimulatedLimitsError = 0.03;  // of one limit (docs/explanation/fleet-accuracy.md)

int wanted_fleets(int usual) {
  const char* wanted = std::getenv("BERTH_MONOTONE_FLEETS");
  return wanted == nullptr ? usual : usual * std::atoi(wanted) / 100;
}

/// A generated fleet with lengths and arrivals that vary, performance of which half lets prefill
/// and decode be apart, and percentiles where `tails`.
System varied_fleet(Rng& rng, std::uint64_t seed, int servers, int accelerators, bool tails) {
  System system = testing::generated_fleet(seed, servers, accelerators);
  constexpr std::array kArrivalCvs{0.0, 0.5, 1.0, 1.0, 1.5, 3.0};
  for (auto& [name, server] : system.servers) {
    Load& load = server.current.load;
    load.in_cv = rng.below(2) == 0 ? 0 : 1.5 * rng.uniform();
    load.out_cv = rng.below(2) == 0 ? 0 : 1.5 * rng.uniform();
    load.arrival_cv = kArrivalCvs[rng.below(kArrivalCvs.size())];
  }
  for (auto& [name, model] : system.models)
    for (auto& [accelerator, performance] : model.accelerators)
      if (rng.below(2) == 0) performance.transfer = {3, 0.01};
  for (auto& [name, service_class] : system.classes)
    for (auto& [model, target] : service_class.targets)
      if (tails && rng.below(2) == 0)
        target.percentiles.ttft_ms[rng.below(4)] = target.ttft_ms * (0.5 + 2 * rng.uniform());
  return system;
}

enum class Change { more_load, tighter_targets, dearer, less_capacity };
constexpr std::array kChanges{Change::more_load, Change::tighter_targets, Change::dearer,
                              Change::less_capacity};

/// The fleet with some of its parts changed for the worse.
System worse(Rng& rng, System system, Change change) {
  const auto is_chosen = [&] { return rng.below(2) == 0; };
  const auto lower = [&](double& value) { value *= 1 - 0.5 * rng.uniform() * rng.uniform(); };
  switch (change) {
    case Change::more_load:
      for (auto& [name, server] : system.servers)
        if (is_chosen()) server.current.load.arrivals_per_min *= 1 + rng.uniform() * rng.uniform();
      break;
    case Change::tighter_targets:
      for (auto& [name, service_class] : system.classes)
        for (auto& [model, target] : service_class.targets) {
          if (is_chosen()) lower(target.itl_ms);
          if (is_chosen()) lower(target.ttft_ms);
          for (double& ms : target.percentiles.ttft_ms)
            if (is_chosen()) lower(ms);
        }
      break;
    case Change::dearer:
      for (auto& [name, accelerator] : system.accelerators)
        if (is_chosen()) accelerator.cost *= 1 + rng.uniform();
      break;
    case Change::less_capacity:
      for (auto& [type, capacity] : system.capacities)
        if (is_chosen()) capacity.count -= capacity.count > 0 ? 1 : 0;
      break;
  }
  return system;
}

/// "" where no plan of the worse fleet can be better than every plan of the other one.
std::string betterment(const Proof& before, const Proof& after) {
  for (const auto& [priority, least] : before.unserved_bound) {
    const int now = after.unserved.at(priority);
    if (now > least) return "";
    if (now < least) return fmt::format("{} unserved of priority {}, not {}", now, priority, least);
  }
  const double rounding = 1e-6 * std::max(1.0, std::abs(before.bound));
  if (after.value >= before.bound - rounding) return "";
  return fmt::format("value {:.6f}, not {:.6f}", after.value, before.bound);
}

/// The candidates and pools that became smaller by more than this part of their replicas, or
/// appeared.
std::string smaller(const Candidates& before, const Candidates& after, double error) {
  std::string found;
  const auto compare = [&](std::size_t s, std::span<const Candidate> of,
                           std::span<const Candidate> to) {
    for (const Candidate& now : to) {
      const auto was = std::ranges::find_if(of, [&](const Candidate& c) {
        return c.accelerator == now.accelerator && c.role == now.role;
      });
      if (now.accelerator == Candidate::kNothing) continue;
      if (was == of.end() || now.replicas < std::floor(was->replicas * (1 - error)))
        found += fmt::format("{} on {}: {} replicas, not {}\n", before.servers[s],
                             with_role(before.accelerators[now.accelerator], now.role),
                             now.replicas, was == of.end() ? 0 : was->replicas);
    }
  };
  for (std::size_t s = 0; s < before.servers.size(); ++s) compare(s, before.of(s), after.of(s));
  for (std::size_t s = 0; s < before.pools.size(); ++s) compare(s, before.pools[s], after.pools[s]);
  return found;
}

TEST(Monotone, NothingGetsBetterByWhatIsWorse) {
  Rng rng(21);
  const int fleets = wanted_fleets(100);
  int changed = 0;
  for (int i = 0; i < fleets; ++i) {
    const auto model = i % 2 == 0 ? QueueModel::calibrated : QueueModel::reference;
    System system =
        varied_fleet(rng, 500 + static_cast<std::uint64_t>(i), 4 + static_cast<int>(rng.below(17)),
                     3 + static_cast<int>(rng.below(6)), i % 4 == 0);
    system.options = {.model = model, .disaggregated = i % 6 < 4 && i % 2 == 0};
    const Candidates made = candidates(system, model);
    testing::limit_to(system, std::array{0.3, 0.6, 0.9, 1.5}[rng.below(4)], made);
    const Plan plan = solve(system, made, system.options);
    for (const Change change : kChanges) {
      const System after = worse(rng, system, change);
      const Candidates now = candidates(after, model);
      const Plan then = solve(after, now, system.options);
      EXPECT_EQ(smaller(made, now, 0), "") << "fleet " << i << " change " << int(change);
      EXPECT_EQ(betterment(plan.proof, then.proof), "")
          << "fleet " << i << " change " << int(change);
      changed += then.proof.value != plan.proof.value ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 2 * fleets) << "else the changes do nothing";
}

/// Limits that are simulated are within their error: each of two may be off by as much.
TEST(Monotone, SimulatedLimitsToWithinTheirError) {
  Rng rng(22);
  const int fleets = wanted_fleets(2);
  Execution execution;
  execution.rate_limit = [](const RateQuestion& question) { return simulated_limit(question); };
  for (int i = 0; i < fleets; ++i) {
    System system = varied_fleet(rng, 900 + static_cast<std::uint64_t>(i), 4, 3, true);
    system.options.disaggregated = true;
    const Candidates made = candidates(system, QueueModel::calibrated, execution);
    for (const Change change : {Change::more_load, Change::tighter_targets}) {
      const System after = worse(rng, system, change);
      EXPECT_EQ(smaller(made, candidates(after, QueueModel::calibrated, execution),
                        2 * kSimulatedLimitsError),
                "")
          << "fleet " << i;
    }
  }
}

}  // namespace
}  // namespace berth::fleet
