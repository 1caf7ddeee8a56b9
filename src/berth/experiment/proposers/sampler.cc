#include "berth/experiment/proposers/sampler.h"

#include <cmath>
#include <numbers>

#include "berth/experiment/proposers/sobol.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {

Parts parts_of(const std::vector<Parameter>& params, const Values& values) {
  Parts parts;
  for (const auto& parameter : params) {
    const auto* value = find_value(values, parameter.name);
    parts.push_back(value == nullptr ? std::nullopt : part_of(parameter, *value));
  }
  return parts;
}

bool add(History& history, const std::vector<Parameter>& params, const TrialReport& trial) {
  const auto [at, is_new] = history.try_emplace(trial.number);
  Heard& heard = at->second;
  if (is_new) heard.parts = parts_of(params, trial.trial.params);
  if (heard.over || trial.state == TrialReport::State::open) return false;
  heard.over = true;
  heard.merit = merit_of(trial);
  heard.excesses = trial.excesses;
  return true;
}

Values quasi_random(const std::vector<Parameter>& params, std::int64_t number, std::uint64_t seed) {
  Values values;
  for (std::size_t at = 0; at < params.size(); ++at)
    if (present(params[at], values))
      values.emplace_back(
          params[at].name,
          value_at(params[at], sobol(static_cast<std::uint64_t>(number), at, seed)));
  return values;
}

double normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
  return radius * std::cos(2 * std::numbers::pi * rng.uniform());
}

}  // namespace berth::experiment
