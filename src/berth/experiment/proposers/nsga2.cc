#include "berth/experiment/proposers/nsga2.h"

#include <algorithm>
#include <cmath>

#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

// That survive: a fifteenth of all trials. Few at first, so that a search of 300 trials has
// generations enough; more later, so that they cover a front (bench/search.py).
constexpr std::int64_t kFewest = 16, kMostPopulation = 100, kShare = 15;
constexpr std::size_t kOffspring = 5;         // ended trials of a generation; fewer learn sooner
constexpr std::size_t kGenerationsKept = 64;  // a trial that ends later costs a replay
constexpr double kCrossoverIndex = 3, kMutationIndex = 5;  // greater: children nearer to parents
constexpr double kCrossover = 0.9;                         // the chance that parents mix at all
constexpr int kAttempts = 8;                               // at a child that was not tried yet

/// How far a child is from the middle of its parents, in halves of their distance.
double spread(Rng& rng) {
  const double u = rng.uniform();
  const double power = 1 / (kCrossoverIndex + 1);
  return u < 0.5 ? std::pow(2 * u, power) : std::pow(2 * (1 - u), -power);
}

/// A move along the whole line.
double mutation(Rng& rng) {
  const double u = rng.uniform();
  const double power = 1 / (kMutationIndex + 1);
  return u < 0.5 ? std::pow(2 * u, power) - 1 : 1 - std::pow(2 * (1 - u), power);
}

}  // namespace

Nsga2::Nsga2(std::vector<Parameter> params, std::uint64_t seed)
    : params_(std::move(params)), seed_(seed) {}

void Nsga2::tell(const TrialReport& trial) {
  tried_.insert(parts_of(params_, trial.trial.params));
  if (!add(history_, params_, trial)) return;
  while (!states_.empty() && states_.back()->seen_to >= trial.number) states_.pop_back();
}

/// The best of them, so many.
std::vector<Nsga2::State::Parent> Nsga2::survivors(std::vector<State::Parent> all,
                                                   std::size_t count) {
  std::vector<const Merit*> merits;
  for (const auto& each : all) merits.push_back(&each.merit);
  std::vector<State::Parent> chosen;
  for (const auto& front : fronts(merits, count)) {
    std::vector<const Merit*> of_front;
    for (const auto each : front) of_front.push_back(merits[each]);
    const auto distances = crowding(of_front);
    std::vector<std::pair<double, std::size_t>> ranked;
    for (std::size_t i = 0; i < front.size(); ++i) ranked.emplace_back(-distances[i], front[i]);
    std::ranges::stable_sort(ranked, {}, &std::pair<double, std::size_t>::first);
    for (const auto& [distance, each] : ranked) {
      if (chosen.size() == count) break;
      chosen.push_back(std::move(all[each]));
    }
  }
  return chosen;
}

const Nsga2::State& Nsga2::state() const {
  if (states_.empty()) states_.push_back(std::make_shared<const State>());
  std::vector<State::Parent> generation;
  for (auto at = history_.upper_bound(states_.back()->seen_to); at != history_.end(); ++at) {
    const Heard& heard = at->second;
    if (!heard.over) continue;
    generation.push_back({heard.parts, heard.merit});
    if (generation.size() < kOffspring) continue;
    const State& before = *states_.back();
    generation.insert(generation.end(), before.parents.begin(), before.parents.end());
    const auto ended = before.ended + static_cast<std::int64_t>(kOffspring);
    const auto count =
        static_cast<std::size_t>(std::clamp(ended / kShare, kFewest, kMostPopulation));
    states_.push_back(std::make_shared<const State>(
        State{survivors(std::move(generation), count), ended, at->first}));
    if (states_.size() > kGenerationsKept) states_.pop_front();
    generation = {};
  }
  return *states_.back();
}

/// Of two parents, each the better of two by the lot.
Values Nsga2::child(const State& state, std::int64_t number, int attempt) const {
  Rng rng(mix(seed_ + static_cast<std::uint64_t>(attempt)) ^
          mix(static_cast<std::uint64_t>(number)));
  const auto parent = [&]() -> const Parts& {
    // They are sorted by front and crowding.
    const auto one = rng.below(state.parents.size()), other = rng.below(state.parents.size());
    return state.parents[std::min(one, other)].parts;
  };
  const Parts& mother = parent();
  const Parts& father = parent();
  const bool mixes = rng.uniform() < kCrossover;
  const double often = 1 / static_cast<double>(params_.size());
  Values values;
  for (std::size_t at = 0; at < params_.size(); ++at) {
    const Parameter& parameter = params_[at];
    const bool swaps = rng.uniform() < 0.5, crosses = rng.uniform() < 0.5;
    const double beta = spread(rng), move = mutation(rng), lot = rng.uniform();
    const bool mutates = rng.uniform() < often;
    if (!present(parameter, values)) continue;
    const auto& near = mixes && swaps ? father[at] : mother[at];
    const auto& far = mixes && swaps ? mother[at] : father[at];
    double part = near ? *near : far ? *far : lot;
    if (!parameter.choices.empty()) {
      if (mutates) part = lot;
    } else {
      if (mixes && crosses && near && far)
        part = std::clamp((*near + *far) / 2 + beta * (*near - *far) / 2, 0.0, 1.0);
      // To another whole number at least.
      const double least = share(parameter, part);
      if (mutates)
        part = std::clamp(part + std::copysign(std::max(std::abs(move), least), move), 0.0, 1.0);
    }
    values.emplace_back(parameter.name, value_at(parameter, part));
  }
  return values;
}

Values Nsga2::propose(std::int64_t number) const {
  const State& now = state();
  if (now.ended < kFewest) return quasi_random(params_, number, seed_);
  Values values;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    values = child(now, number, attempt);
    if (!tried_.contains(parts_of(params_, values))) break;
  }
  return values;
}

}  // namespace berth::experiment
