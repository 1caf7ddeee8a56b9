#include "berth/fleet/solver/mixes.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "berth/fleet/model/system_view.h"
#include "berth/fleet/model/value.h"
#include "berth/fleet/queueing/thinning.h"

namespace berth::fleet {
namespace {

/// What of a server all its mixes share.
struct Wanted {
  const Server& server;
  const Target& target;
  double rate_per_ms = 0;
};

Wanted wanted_of(const System& system, const Candidates& candidates, std::size_t s) {
  const Server& server = system.servers.at(candidates.servers[s]);
  const Target& target = system.classes.at(class_of(server)).targets.at(server.model);
  return {server, target, rate_per_ms(server.current.load, target, candidates.model)};
}

/// One accelerator that a mix may be made of.
struct Side {
  std::uint32_t place = 0, type = 0;
  const Candidate* candidate = nullptr;
  double cost = 0;  // of a replica
  Part part;

  std::int64_t units(std::int64_t replicas) const {
    return replicas * candidate->units_per_replica;
  }
};

/// A mix and what it takes of its two types; of one type alone, nothing of the second.
struct Found {
  Mix mix;
  std::array<std::uint32_t, 2> types{};
  std::array<std::int64_t, 2> units{};
};

class MixMaker {
 public:
  MixMaker(const System& system, const Candidates& candidates, std::size_t s,
           std::span<const std::int64_t> limits)
      : model_(candidates.model), limits_(limits), wanted_(wanted_of(system, candidates, s)) {
    for (std::size_t i = candidates.begin[s]; i < candidates.begin[s + 1]; ++i) {
      const Candidate& c = candidates.all[i];
      const std::string& name = candidates.accelerators[c.accelerator];
      const Accelerator& accelerator = system.accelerators.at(name);
      sides_.push_back({static_cast<std::uint32_t>(i), candidates.type_of[c.accelerator], &c,
                        accelerator.cost * (c.units_per_replica / accelerator.multiplicity),
                        part_of(wanted_.server.current, name)});
    }
  }

  std::vector<Mix> make() {
    for (std::size_t i = 0; i < sides_.size(); ++i)
      for (std::size_t j = i + 1; j < sides_.size(); ++j) add_pair(sides_[i], sides_[j]);
    return preferable();
  }

 private:
  void add_pair(const Side& first, const Side& second) {
    const bool first_is_few = first.candidate->replicas <= second.candidate->replicas;
    const Side& few = first_is_few ? first : second;
    const Side& many = first_is_few ? second : first;
    const std::int64_t alone = few.candidate->replicas;
    const std::int64_t steps = std::min<std::int64_t>(alone, kMostSplits + 1);
    const double wanted_per_s = 1000 * wanted_.rate_per_ms * (1 - kRateRounding);
    for (std::int64_t step = 1; step < steps; ++step) {
      const std::int64_t some = alone * step / steps;
      const double left_per_s =
          wanted_per_s - static_cast<double>(some) * few.candidate->rate_per_s;
      const double least =
          static_cast<double>(std::max<std::int64_t>(1, wanted_.server.min_replicas - some));
      const double rest = left_per_s > 0
                              ? std::max(std::ceil(left_per_s / many.candidate->rate_per_s), least)
                              : least;
      if (!(rest <= kMostReplicas - static_cast<double>(some))) continue;
      std::array replicas{static_cast<std::int32_t>(some), static_cast<std::int32_t>(rest)};
      if (!first_is_few) std::swap(replicas[0], replicas[1]);
      add(first, second, replicas);
    }
  }

  void add(const Side& first, const Side& second, const std::array<std::int32_t, 2>& replicas) {
    Found found{{{first.place, second.place}, replicas},
                {first.type, second.type},
                {first.units(replicas[0]), second.units(replicas[1])}};
    if (first.type == second.type) found.units[0] += std::exchange(found.units[1], 0);
    if (first.type > second.type) {
      std::swap(found.types[0], found.types[1]);
      std::swap(found.units[0], found.units[1]);
    }
    for (std::size_t i = 0; i < 2; ++i)
      if (found.units[i] > limits_[found.types[i]]) return;
    std::array parts{first.part, second.part};
    for (std::size_t i = 0; i < 2; ++i) {
      parts[i].replicas = replicas[i];
      parts[i].cost = (i == 0 ? first : second).cost * replicas[i];
    }
    found.mix.value = value_of(wanted_.server.current, parts, model_);
    if (!is_dominated_by_candidate(found)) found_.push_back(found);
  }

  /// Whether a candidate is: alone, of one of the types.
  bool is_dominated_by_candidate(const Found& found) const {
    return std::ranges::any_of(sides_, [&](const Side& side) {
      if (side.candidate->value > found.mix.value) return false;
      const std::int64_t units = side.candidate->units();
      return (side.type == found.types[0] && units <= found.units[0]) ||
             (side.type == found.types[1] && units <= found.units[1]);
    });
  }

  std::vector<Mix> preferable() {
    const auto rank = [](const Found& f) {
      return std::tuple(f.types, f.mix.value, f.units, f.mix.places, f.mix.replicas);
    };
    std::ranges::sort(found_, std::less{}, rank);
    std::vector<Mix> kept;
    std::vector<const Found*> of_types;  // kept, of the same types
    for (const Found& f : found_) {
      if (!of_types.empty() && of_types.back()->types != f.types) of_types.clear();
      if (std::ranges::any_of(of_types, [&](const Found* k) {
            return k->units[0] <= f.units[0] && k->units[1] <= f.units[1];
          }))
        continue;
      of_types.push_back(&f);
      kept.push_back(f.mix);
    }
    return kept;
  }

  const QueueModel model_;
  const std::span<const std::int64_t> limits_;
  const Wanted wanted_;
  std::vector<Side> sides_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<Mix> mixes_of(const System& system, const Candidates& candidates, std::size_t server,
                          std::span<const std::int64_t> limits) {
  if (candidates.of(server).size() < 2) return {};  // one may stand for no accelerator at all
  return MixMaker(system, candidates, server, limits).make();
}

Allocation allocation_of(const System& system, const Candidates& candidates, std::size_t server,
                         const Mix& mix) {
  const Wanted wanted = wanted_of(system, candidates, server);
  const Load& load = wanted.server.current.load;
  const Demand demand = demand_of(load, wanted.server, wanted.target);
  std::array<double, 2> weights{};  // how much of the load each part takes
  for (std::size_t i = 0; i < 2; ++i)
    weights[i] = candidates.all[mix.places[i]].rate_per_s * mix.replicas[i];
  const double all = weights[0] + weights[1];
  for (std::size_t i = 0; i < 2; ++i) weights[i] = all > 0 ? weights[i] / all : 0.5;

  Allocation whole;
  for (std::size_t i = 0; i < 2; ++i) {
    const Candidate& c = candidates.all[mix.places[i]];
    Allocation part;
    part.accelerator = candidates.accelerators[c.accelerator];
    const Accelerator& accelerator = system.accelerators.at(part.accelerator);
    part.replicas = mix.replicas[i];
    part.batch = c.batch;
    part.cost = accelerator.cost * (c.units_per_replica / accelerator.multiplicity) * part.replicas;
    part.itl_ms = c.itl_ms, part.ttft_ms = c.ttft_ms, part.utilisation = c.utilisation;
    if (wanted.rate_per_ms > 0) {
      const Performance& performance =
          system.models.at(wanted.server.model).accelerators.at(part.accelerator);
      const double rate = wanted.rate_per_ms * weights[i] / part.replicas;
      set_figures(part, thinned(demand, weights[i] / part.replicas), performance, rate,
                  candidates.model);
    }
    part.load = load;
    part.load.arrivals_per_min *= weights[i];
    whole.replicas += part.replicas;
    whole.cost += part.cost;
    whole.itl_ms += weights[i] * part.itl_ms;
    whole.ttft_ms += weights[i] * part.ttft_ms;
    whole.utilisation += weights[i] * part.utilisation;
    whole.parts.push_back(std::move(part));
  }
  const Allocation& most = whole.parts[weights[1] > weights[0] ? 1 : 0];
  whole.accelerator = most.accelerator;
  whole.batch = most.batch;
  whole.load = load;
  return whole;
}

}  // namespace berth::fleet
