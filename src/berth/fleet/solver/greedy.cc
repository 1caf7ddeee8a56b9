#include <algorithm>
#include <cmath>
#include <set>

#include "berth/fleet/solver/solution.h"

namespace berth::fleet {
namespace {

/// Candidates by rising value; among equals the first accelerator.
std::vector<const Candidate*> by_value(const Candidates& candidates, std::size_t server) {
  std::vector<const Candidate*> result;
  for (const Candidate& c : candidates.of(server)) result.push_back(&c);
  std::ranges::stable_sort(result, {}, &Candidate::value);
  return result;
}

class Greedy {
 public:
  Greedy(const Candidates& candidates, std::vector<std::int64_t> limits, const Options& options)
      : candidates_(candidates),
        left_(std::move(limits)),
        options_(options),
        servers_(candidates.servers.size()),
        solution_(candidates.servers.size()) {}

  Solution solve() {
    std::map<int, std::vector<std::size_t>> groups;
    for (std::size_t s = 0; s < servers_.size(); ++s) {
      servers_[s].choices = by_value(candidates_, s);
      if (!servers_[s].choices.empty()) groups[candidates_.priority[s]].push_back(s);
    }
    std::vector<std::vector<std::size_t>> unserved;
    for (const auto& [priority, group] : groups) {
      unserved.push_back(serve(group));
      if (!options_.delayed_best_effort) best_effort({std::exchange(unserved.back(), {})});
    }
    best_effort(unserved);
    return std::move(solution_);
  }

 private:
  struct Cursor {
    std::vector<const Candidate*> choices;
    std::size_t at = 0;

    double value() const { return choices[at]->value; }
    double delta() const {
      return at + 1 < choices.size() ? choices[at + 1]->value - value() : HUGE_VAL;
    }
  };

  std::int64_t& left(const Candidate& c) { return left_[candidates_.type_of[c.accelerator]]; }
  bool fits(const Candidate& c, std::int64_t replicas) {
    return c.accelerator == Candidate::kNothing || replicas * c.units_per_replica <= left(c);
  }
  void give(std::size_t server, const Candidate& c, int replicas) {
    Pick& pick = solution_[server];
    pick.candidate = &c;
    pick.replicas += replicas;
    if (c.accelerator != Candidate::kNothing)
      left(c) -= std::int64_t{replicas} * c.units_per_replica;
  }

  /// Those of the group for whom nothing was left, in the order in which that was found.
  std::vector<std::size_t> serve(const std::vector<std::size_t>& group) {
    const auto first = [this](std::size_t a, std::size_t b) {
      const Cursor &x = servers_[a], &y = servers_[b];
      if (x.delta() != y.delta()) return x.delta() > y.delta();
      if (x.value() != y.value()) return x.value() > y.value();
      return a < b;
    };
    std::set<std::size_t, decltype(first)> waiting(group.begin(), group.end(), first);
    std::vector<std::size_t> unserved;
    while (!waiting.empty()) {
      const std::size_t server = *waiting.begin();
      waiting.erase(waiting.begin());
      Cursor& cursor = servers_[server];
      if (const Candidate& c = *cursor.choices[cursor.at]; fits(c, c.replicas))
        give(server, c, c.replicas);
      else if (++cursor.at < cursor.choices.size())
        waiting.insert(server);
      else
        unserved.push_back(server);
    }
    return unserved;
  }

  void best_effort(const std::vector<std::vector<std::size_t>>& groups) {
    switch (options_.saturation) {
      case Saturation::none: return;
      case Saturation::priority_exhaustive:
        for (const auto& group : groups)
          for (const std::size_t server : group)
            while (one_more(server)) {
            }
        return;
      case Saturation::priority_round_robin:
        for (const auto& group : groups) in_rounds(group);
        return;
      case Saturation::round_robin: {
        std::vector<std::size_t> all;
        for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
        in_rounds(all);
      }
    }
  }

  void in_rounds(const std::vector<std::size_t>& servers) {
    for (bool any = true; std::exchange(any, false);)
      for (const std::size_t server : servers) any = one_more(server) || any;
  }

  /// Of the candidate that was begun with, or the first of which one replica fits.
  bool one_more(std::size_t server) {
    const Pick pick = solution_[server];
    if (pick.candidate != nullptr) {
      if (pick.replicas == pick.candidate->replicas || !fits(*pick.candidate, 1)) return false;
      give(server, *pick.candidate, 1);
      return true;
    }
    for (const Candidate* c : servers_[server].choices)
      if (fits(*c, 1)) {
        give(server, *c, 1);
        return true;
      }
    return false;
  }

  const Candidates& candidates_;
  std::vector<std::int64_t> left_;  // by type
  const Options& options_;
  std::vector<Cursor> servers_;
  Solution solution_;
};

}  // namespace

std::vector<std::int64_t> limits_of(const System& system, const Candidates& candidates) {
  std::vector<std::int64_t> limits;
  for (const auto& type : candidates.types) {
    const auto found = system.capacities.find(type);
    limits.push_back(found == system.capacities.end() ? 0 : found->second.count);
  }
  return limits;
}

Solution solve_unlimited(const Candidates& candidates) {
  Solution solution;
  for (std::size_t s = 0; s < candidates.servers.size(); ++s) {
    const auto of = candidates.of(s);
    const auto least = std::ranges::min_element(of, {}, &Candidate::value);
    solution.push_back(least == of.end() ? Pick{} : Pick{&*least, least->replicas});
  }
  return solution;
}

Solution solve_greedy(const Candidates& candidates, std::vector<std::int64_t> limits,
                      const Options& options) {
  return Greedy(candidates, std::move(limits), options).solve();
}

}  // namespace berth::fleet
