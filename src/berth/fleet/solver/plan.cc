#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/fleet/model/purchase.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/model/value.h"
#include "berth/fleet/solver/solution.h"
#include "berth/fleet/solver/splits.h"

namespace berth::fleet {
namespace {

class Planner {
 public:
  Planner(const System& system, const Candidates& candidates, const Options& options,
          const Execution& execution)
      : system_(system), candidates_(candidates), options_(options) {
    limits_ = limits_of(system, candidates);
    left_ = limits_;
    left_w_ = options.power_budget_w.value_or(HUGE_VAL);
    prices_.assign(limits_.size(), 0);
    choose(execution);
    for (std::size_t s = 0; s < solution_.size(); ++s)
      each_part(s, [&](const Candidate& c, int replicas) {
        left_[type_of(c)] -= std::int64_t{replicas} * c.units_per_replica;
        left_w_ -= c.watts;
      });
    if (!spot_prices_.empty()) make_bills();
    assignments_.resize(system.servers.size());
    std::vector<const Server*> servers;
    for (const auto& [name, server] : system.servers) servers.push_back(&server);
    for_each(execution, servers.size(),
             [&](std::size_t s) { assignments_[s] = assignment_of(s, *servers[s]); });
  }

  Plan plan() {
    std::size_t s = 0;
    for (const auto& [name, server] : system_.servers) {
      Assignment& assignment = assignments_[s];
      assignment.watts = power_w(system_, server, assignment.allocation);
      plan_.cost += assignment.allocation.cost;
      plan_.watts += assignment.watts;
      plan_.proof.value += assignment.value;
      plan_.proof.unserved[candidates_.priority[s]] += assignment.why == Why::served ? 0 : 1;
      plan_.servers.emplace(name, std::move(assignment));
      ++s;
    }
    add_totals();
    if (options_.power_budget_w) plan_.power = {*options_.power_budget_w, power_price_};
    Proof& proof = plan_.proof;
    proof.bound = std::min(proof.bound, proof.value);
    proof.gap = (proof.value - proof.bound) / std::max(1.0, plan_.cost);
    return std::move(plan_);
  }

 private:
  static bool has_accelerator(const Candidate& c) { return c.accelerator != Candidate::kNothing; }
  /// visit(candidate, replicas of it) for each accelerator that the server gets.
  template <class Visit>
  void each_part(std::size_t s, const Visit& visit) const {
    const Pick& pick = solution_[s];
    if (pick.candidate != nullptr && has_accelerator(*pick.candidate))
      visit(*pick.candidate, pick.replicas);
    for (std::size_t i = 0; pick.mix && i < 2; ++i)
      visit(side_of(candidates_, s, *pick.mix, i), pick.mix->replicas[i]);
  }
  std::size_t type_of(const Candidate& c) const { return candidates_.type_of[c.accelerator]; }

  void choose(const Execution& execution) {
    const bool unlimited = options_.solver == Solver::unlimited;
    const bool is_paired = options_.heterogeneous || options_.disaggregated;
    if (options_.solver == Solver::optimal || (unlimited && is_paired)) {
      Optimum optimum;
      if (unlimited)
        optimum.solution = solve_unlimited(candidates_);
      else
        optimum = solve_alone(execution);
      if (is_paired)
        optimum = solve_mixed(system_, candidates_, unlimited ? boundless() : limits_, options_,
                              execution, optimum);
      solution_ = std::move(optimum.solution);
      prices_ = std::move(optimum.prices);
      power_price_ = optimum.power_price;
      spot_prices_ = std::move(optimum.spot_prices);
      plan_.proof.unserved_bound = std::move(optimum.unserved_bound);
      plan_.proof.bound = optimum.bound;
      plan_.proof.stopped = optimum.stopped || candidates_.stopped;
      return;
    }
    solution_ =
        unlimited ? solve_unlimited(candidates_) : solve_greedy(candidates_, limits_, options_);
    // What holds of any plan: nobody without a candidate is served, nobody below its least value.
    for (std::size_t s = 0; s < solution_.size(); ++s) {
      const auto of = candidates_.of(s);
      plan_.proof.unserved_bound[candidates_.priority[s]] += of.empty() ? 1 : 0;
      if (of.empty()) continue;
      const double least = std::ranges::min_element(of, {}, &Candidate::value)->value;
      plan_.proof.bound += unlimited ? least : std::min(0.0, least);
    }
  }

  /// The optimum with one accelerator a server.
  Optimum solve_alone(const Execution& execution) const {
    if (has_purchases(system_)) return solve_by_purchase(system_, candidates_, execution);
    if (const auto budget_w = options_.power_budget_w)
      return solve_within_power(system_, candidates_, limits_, *budget_w, execution);
    return solve_optimal(candidates_, limits_, execution);
  }

  std::vector<std::int64_t> boundless() const {
    return std::vector<std::int64_t>(limits_.size(), INT64_MAX);
  }

  /// What is bought in several ways; after the choice.
  void make_bills() {
    bills_.resize(limits_.size());
    std::vector<std::array<std::int64_t, 2>> used(limits_.size());  // by type; of spot
    for (std::size_t s = 0; s < solution_.size(); ++s)
      each_part(s, [&](const Candidate& c, int replicas) {
        used[type_of(c)][solution_[s].is_spot ? 1 : 0] +=
            std::int64_t{replicas} * c.units_per_replica;
      });
    for (std::size_t type = 0; type < limits_.size(); ++type) {
      const auto found = system_.capacities.find(candidates_.types[type]);
      if (found == system_.capacities.end() || found->second.purchases.empty()) continue;
      bills_[type] =
          bill_of(found->second, used[type][0], used[type][1], prices_[type], spot_prices_[type]);
    }
  }

  /// What a server that stays on one accelerator pays, and what it adds to the bill.
  void set_bought(Assignment& result, const Server& server, const Pick& pick) const {
    const Candidate& c = *pick.candidate;
    if (bills_.empty() || !has_accelerator(c) || !bills_[type_of(c)]) return;
    const Bill& bill = *bills_[type_of(c)];
    const auto units = static_cast<double>(c.units());
    result.is_spot = pick.is_spot;
    const double change = value_of(server.current, candidates_.accelerators[c.accelerator],
                                   c.replicas, c.cost, QueueModel::calibrated) -
                          c.cost;
    result.value = change + units * (pick.is_spot ? bill.spot_cost : bill.unit_added);
    result.allocation.cost = units * (pick.is_spot ? bill.spot_cost : bill.unit_cost);
    result.reason += pick.is_spot ? "; on spot" : "";
  }

  Assignment assignment_of(std::size_t s, const Server& server) const {
    const Pick& pick = solution_[s];
    Assignment result;
    result.allocation.load = server.current.load;
    if (pick.mix) {
      set_mix(result, s, *pick.mix);
      return result;
    }
    if (pick.candidate == nullptr) {
      if (const auto splits = splits_beyond(s); !splits.empty()) {
        result.why = Why::capacity;
        result.reason =
            fmt::format("no capacity for separate prefill and decode: {} would be enough",
                        in_words(allocation_of_split(system_, candidates_, s, splits.front())));
      } else if (candidates_.of(s).empty()) {
        result.why = Why::no_candidate;
        result.reason = why_no_candidate(server, candidates_, s);
      } else if (const Candidate* c = least_that_wants_power(s)) {
        result.why = Why::power;
        result.reason = fmt::format(
            "no power: {} × {} would draw {:.0f} W, of which {:.0f} are "
            "left; {}",
            c->replicas, candidates_.accelerators[c->accelerator], c->watts, std::max(0.0, left_w_),
            power_scarcity());
      } else {
        result.why = Why::capacity;
        result.reason = for_want_of_capacity(s);
      }
      return result;
    }
    const Candidate& c = *pick.candidate;
    result.binding = c.binding;
    result.allocation = allocation_of(system_, candidates_, server, c, pick.replicas);
    if (pick.serves()) {
      result.value = c.value;
      result.reason = served_because(s, c);
      set_bought(result, server, pick);
      return result;
    }
    const Allocation& current = server.current;
    result.why = Why::partly;
    result.value = value_of(current, result.allocation.accelerator, pick.replicas,
                            result.allocation.cost, options_.model);
    result.reason = fmt::format("{} of {} replicas: no more of {}", pick.replicas, c.replicas,
                                candidates_.types[type_of(c)]);
    return result;
  }

  void set_mix(Assignment& result, std::size_t s, const Mix& mix) const {
    result.allocation = mix.is_split ? allocation_of_split(system_, candidates_, s, mix)
                                     : allocation_of(system_, candidates_, s, mix);
    result.value = mix.value;
    std::vector<std::string> bounds;
    each_part(s, [&](const Candidate& c, int) {
      if (candidates_.accelerators[c.accelerator] == result.allocation.accelerator)
        result.binding = c.binding;
      bounds.push_back(fmt::format("{} binds {}", fleet::name(c.binding), fleet::name(c.role)));
    });
    result.reason =
        (mix.is_split ? join(bounds, ", ") : fmt::format("{} binds", fleet::name(result.binding))) +
        beside(s, result.allocation.cost, result.value);
  }

  /// Where only splits could serve it, those that there is no capacity for, the least value first.
  std::vector<Mix> splits_beyond(std::size_t s) const {
    if (!options_.disaggregated || !candidates_.of(s).empty()) return {};
    return splits_of(system_, candidates_, s, boundless());
  }

  std::string served_because(std::size_t s, const Candidate& c) const {
    if (!has_accelerator(c)) return "idle, and no replica has to be kept";
    std::string text = c.binding == Binding::min_replicas
                           ? "minNumReplicas binds"
                           : fmt::format("{} binds", fleet::name(c.binding));
    return text + (options_.solver == Solver::optimal ? beside(s, c.cost, c.value) : "");
  }

  /// The candidate of the least value beside what the server gets: in money, and in the value that
  /// the choice was made by.
  std::string beside(std::size_t s, double cost, double value) const {
    // Candidates have no price before all are chosen.
    if (!bills_.empty() || candidates_.of(s).empty()) return "";
    const Candidate& least = *std::ranges::min_element(candidates_.of(s), {}, &Candidate::value);
    if (!has_accelerator(least) || std::abs(value - least.value) <= 1e-9) return "";
    const double more = least.cost - cost;
    const bool is_better = least.value < value;
    const auto money = std::abs(more) < 0.005 ? std::string("cost the same")
                       : more < 0             ? fmt::format("save {:.2f}", -more)
                                              : fmt::format("cost {:.2f} more", more);
    return fmt::format("; {} × {}{} would {} (value {:.2f} {}){}", least.replicas,
                       candidates_.accelerators[least.accelerator], is_better ? "" : " alone",
                       money, std::abs(least.value - value), is_better ? "less" : "more",
                       is_better ? ", but " + what_keeps_from(least, s) : "");
  }

  /// What is scarce about the candidate beside what the server gets.
  std::string what_keeps_from(const Candidate& better, std::size_t s) const {
    std::int64_t left = left_[type_of(better)];
    each_part(s, [&](const Candidate& c, int replicas) {
      if (type_of(c) == type_of(better)) left += std::int64_t{replicas} * c.units_per_replica;
    });
    const bool wants_power = options_.power_budget_w && left >= better.units();
    return wants_power ? power_scarcity() : scarcity(type_of(better));
  }

  /// The candidate of the least value, and of an accelerator of which enough is left, that the
  /// power budget keeps from an unserved server; null: none, its accelerators are too few.
  const Candidate* least_that_wants_power(std::size_t s) const {
    const Candidate* least = nullptr;
    if (!options_.power_budget_w) return least;
    for (const Candidate& c : candidates_.of(s))
      if (has_accelerator(c) && c.units() <= left_[type_of(c)] && c.watts > left_w_ &&
          (least == nullptr || c.value < least->value))
        least = &c;
    return least;
  }

  std::string power_scarcity() const {
    return fmt::format("the power budget is {:.0f} W{}", *options_.power_budget_w,
                       power_price_ > 0 ? fmt::format(", one more kW is worth {:.2f} of value",
                                                      1000 * power_price_)
                                        : "");
  }

  std::string scarcity(std::size_t type) const {
    if (!bills_.empty() && bills_[type]) {
      std::vector<std::string> kinds;
      for (const auto& [kind, total] : bills_[type]->kinds)
        kinds.push_back(
            fmt::format("{} {}", total.limit, fleet::name(kind)) +
            (total.shadow_price > 0
                 ? fmt::format(" (one more is worth {:.2f} of value)", total.shadow_price)
                 : ""));
      return fmt::format("of {} there are {}", candidates_.types[type], join(kinds, ", "));
    }
    return fmt::format(
        "of {} there are {}{}", candidates_.types[type], limits_[type],
        prices_[type] > 0 ? fmt::format(", one more is worth {:.2f} of value", prices_[type]) : "");
  }

  std::string for_want_of_capacity(std::size_t s) const {
    const auto of = candidates_.of(s);
    const Candidate& least = *std::ranges::min_element(of, {}, &Candidate::value);
    return fmt::format("no capacity: {} × {} would take {} of {}; {}", least.replicas,
                       candidates_.accelerators[least.accelerator], least.units(),
                       candidates_.types[type_of(least)], scarcity(type_of(least)));
  }

  void add_totals() {
    std::vector<double> costs(limits_.size(), 0);
    std::vector<std::int64_t> used(limits_.size(), 0);
    for (std::size_t s = 0; s < solution_.size(); ++s)
      each_part(s, [&](const Candidate& c, int replicas) {
        costs[type_of(c)] += c.cost / std::max(1, c.replicas) * replicas;
        used[type_of(c)] += std::int64_t{replicas} * c.units_per_replica;
      });
    for (std::size_t type = 0; type < limits_.size(); ++type) {
      TypeTotal total{.type = candidates_.types[type],
                      .used = used[type],
                      .cost = costs[type],
                      .shadow_price = prices_[type]};
      if (options_.solver != Solver::unlimited) total.limit = limits_[type];
      if (!bills_.empty() && bills_[type]) {
        total.purchases = bills_[type]->kinds;
        total.cost = bills_[type]->cost;
        total.shadow_price = 0;
        for (const auto& [kind, bought] : total.purchases)
          total.shadow_price = std::max(total.shadow_price, bought.shadow_price);
        plan_.cost += bills_[type]->unused;
      }
      plan_.totals.push_back(std::move(total));
    }
  }

  const System& system_;
  const Candidates& candidates_;
  const Options& options_;
  std::vector<std::int64_t> limits_, left_;  // by type; what the plan leaves of them
  std::vector<double> prices_;               // by type
  std::vector<double> spot_prices_;          // the same; none: nothing is bought in several ways
  std::vector<std::optional<Bill>> bills_;   // by type; or none
  double power_price_ = 0, left_w_ = 0;      // what the plan leaves of the power budget
  Solution solution_;
  std::vector<Assignment> assignments_;  // by server
  Plan plan_;
};

}  // namespace

std::string why_no_candidate(const Server& server, const Candidates& candidates, std::size_t s) {
  const std::size_t count = candidates.accelerators.size();
  if (count == 0) return "no accelerators are known";
  const auto row = std::span(candidates.refusals).subspan(s * count, count);
  switch (row[0]) {  // of the whole server
    case Refusal::no_model: return fmt::format("the model '{}' is not known", clip(server.model));
    case Refusal::no_class:
      return fmt::format("the service class '{}' is not known", clip(class_of(server)));
    case Refusal::no_target:
      return fmt::format("the service class '{}' has no target for '{}'", clip(class_of(server)),
                         clip(server.model));
    default: break;
  }
  // The least common reason says the most: few accelerators were near to being candidates.
  std::map<Refusal, std::string> named;
  for (std::size_t a = 0; a < count; ++a)
    if (std::string& names = named[row[a]]; names.size() < 60)
      names += (names.empty() ? "" : ", ") + clip(candidates.accelerators[a]);
  std::vector<std::string> parts;
  for (const auto& [refusal, names] : named)
    if (named.size() == 1 || refusal != Refusal::no_performance)
      parts.push_back(fmt::format("{}: {}", names, fleet::name(refusal)));
  return join(parts, "; ");
}

Plan solve(const System& system, const Candidates& candidates, const Options& options,
           const Execution& execution) {
  return Planner(system, candidates, options, execution).plan();
}

Plan plan(const System& system, const Execution& execution) {
  return solve(system, candidates(system, system.options.model, execution), system.options,
               execution);
}

}  // namespace berth::fleet
