#include "berth/library/fleet_convert.h"

#include <cmath>
#include <utility>

#include "berth/fleet/model/names.h"

namespace berth::library {
namespace {

/// A number that is none of an enumeration's is no choice.
template <class Choice>
Result<Choice> choice(Choice from, int choices, const char* what) {
  const int number = std::to_underlying(from);
  if (number < choices) return from;
  return fail(ErrorKind::invalid, "no such {}: {}", what, number);
}

Status check_amount(const char* what, double amount) {
  if (std::isfinite(amount) && amount >= 0) return {};
  return fail(ErrorKind::invalid, "{}: expected a number of at least 0, got {}", what, amount);
}

}  // namespace

Fleet::Options options_of(const fleet::Options& options) {
  return {.model = options.model,
          .solver = options.solver,
          .saturation = options.saturation,
          .delayed_best_effort = options.delayed_best_effort,
          .heterogeneous = options.heterogeneous,
          .disaggregated = options.disaggregated,
          .power_budget_w = options.power_budget_w};
}

Result<fleet::Options> options_of(const Fleet::Options& options) {
  fleet::Options to{.delayed_best_effort = options.delayed_best_effort,
                    .heterogeneous = options.heterogeneous,
                    .disaggregated = options.disaggregated,
                    .power_budget_w = options.power_budget_w};
  BERTH_ASSIGN(to.model, choice(options.model, 2, "model"));
  BERTH_ASSIGN(to.solver, choice(options.solver, 3, "solver"));
  BERTH_ASSIGN(to.saturation, choice(options.saturation, 4, "saturation"));
  return to;
}

Fleet::Allocation allocation_of(const fleet::Allocation& allocation) {
  const fleet::Load& load = allocation.load;
  Fleet::Allocation to{.accelerator = allocation.accelerator,
                       .role = std::string(fleet::name(allocation.role)),
                       .replicas = allocation.replicas,
                       .batch = allocation.batch,
                       .cost = allocation.cost,
                       .itl_ms = allocation.itl_ms,
                       .ttft_ms = allocation.ttft_ms,
                       .utilisation = allocation.utilisation,
                       .load = {load.arrivals_per_min, load.in_tokens, load.out_tokens, load.in_cv,
                                load.out_cv, load.arrival_cv},
                       .parts = {},
                       .text = fleet::in_words(allocation)};
  for (const auto& part : allocation.parts) to.parts.push_back(allocation_of(part));
  return to;
}

Result<fleet::Load> load_of(const Fleet::Load& load, const fleet::Load& like) {
  BERTH_TRY(check_amount("arrivals_per_min", load.arrivals_per_min));
  BERTH_TRY(check_amount("in_tokens", load.in_tokens));
  BERTH_TRY(check_amount("out_tokens", load.out_tokens));
  BERTH_TRY(check_amount("in_cv", load.in_cv));
  BERTH_TRY(check_amount("out_cv", load.out_cv));
  BERTH_TRY(check_amount("arrival_cv", load.arrival_cv));
  fleet::Load to = like;
  to.arrivals_per_min = load.arrivals_per_min;
  to.in_tokens = load.in_tokens, to.out_tokens = load.out_tokens;
  to.in_cv = load.in_cv, to.out_cv = load.out_cv, to.arrival_cv = load.arrival_cv;
  return to;
}

Result<fleet::Allocation> allocation_of(const Fleet::Allocation& allocation,
                                        const fleet::Allocation& like) {
  if (allocation.replicas < 0 || allocation.batch < 0)
    return fail(ErrorKind::invalid, "{} replicas with a batch of {}: expected at least 0",
                allocation.replicas, allocation.batch);
  BERTH_TRY(check_amount("cost", allocation.cost));
  BERTH_TRY(check_amount("itl_ms", allocation.itl_ms));
  BERTH_TRY(check_amount("ttft_ms", allocation.ttft_ms));
  BERTH_TRY(check_amount("utilisation", allocation.utilisation));
  fleet::Allocation to = priced(allocation);
  to.batch = allocation.batch;
  to.itl_ms = allocation.itl_ms, to.ttft_ms = allocation.ttft_ms;
  to.utilisation = allocation.utilisation;
  BERTH_ASSIGN(to.load, load_of(allocation.load, like.load));
  if (!allocation.role.empty()) {
    const auto role = fleet::choice(fleet::kRoleNames, allocation.role);
    if (!role)
      return fail(ErrorKind::invalid, "role: expected whole, prefill or decode, got '{}'",
                  allocation.role);
    to.role = *role;
  }
  to.parts.clear();
  for (const auto& part : allocation.parts) {
    BERTH_ASSIGN(auto made, allocation_of(part, like));
    to.parts.push_back(std::move(made));
  }
  return to;
}

fleet::Allocation priced(const Fleet::Allocation& allocation) {
  fleet::Allocation to;
  to.accelerator = allocation.accelerator;
  to.role = fleet::choice(fleet::kRoleNames, allocation.role).value_or(fleet::Role::whole);
  to.replicas = allocation.replicas;
  to.cost = allocation.cost;
  for (const auto& part : allocation.parts) to.parts.push_back(priced(part));
  return to;
}

Fleet::Candidate candidate_of(const std::string& accelerator, const fleet::SizedAllocation& sized) {
  const bool is_one = sized.refusal == fleet::Refusal::none;
  return {.accelerator = accelerator,
          .refusal = is_one ? "" : std::string(fleet::name(sized.refusal)),
          .allocation = allocation_of(sized.allocation),
          .replica_per_min = 60 * sized.rate_per_s,
          .binding = std::string(fleet::name(sized.rate_binding)),
          .watts = sized.watts,
          .value = sized.value,
          .saturated = sized.saturated};
}

Fleet::Plan plan_of(const fleet::Plan& plan) {
  Fleet::Plan to{.servers = {},
                 .totals = {},
                 .cost = plan.cost,
                 .watts = plan.watts,
                 .value = plan.proof.value,
                 .bound = plan.proof.bound,
                 .gap = plan.proof.gap,
                 .unserved = plan.proof.unserved,
                 .stopped = plan.proof.stopped,
                 .json = fleet::plan_json(plan, nullptr)};
  for (const auto& [name, each] : plan.servers)
    to.servers.emplace(name, Fleet::Assignment{.served = each.why == fleet::Why::served,
                                               .allocation = allocation_of(each.allocation),
                                               .watts = each.watts,
                                               .value = each.value,
                                               .reason = each.reason});
  for (const auto& total : plan.totals)
    to.totals.push_back({total.type, total.used, total.limit, total.cost, total.shadow_price});
  return to;
}

}  // namespace berth::library
