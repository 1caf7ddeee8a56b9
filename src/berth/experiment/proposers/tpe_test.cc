#include "berth/experiment/proposers/tpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "berth/base/units.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

double parameter_number(const Values& values, std::string_view name) {
  return *parse_number(*find_value(values, name));
}

/// A choice, two whole numbers and a rate, heard through noise.
double noisy_training(const Values& values, Rng& noise) {
  const std::string& kind = *find_value(values, "kind");
  const double offset = kind == "b" ? 0 : kind == "a" ? 1 : 2;
  return offset + std::pow((parameter_number(values, "layers") - 3) / 4, 2) +
         std::pow((parameter_number(values, "width") - 64) / 32, 2) +
         std::pow(std::log10(parameter_number(values, "rate")) + 3, 2) + 0.1 * noise.uniform();
}

/// The least of the values that a search comes to, one trial at a time.
double least_of_training(Search::Method method, std::uint64_t seed) {
  Program program;
  program.params = {
      {.name = "kind", .choices = {"a", "b", "c"}},
      {.name = "layers", .choices = {}, .min = 1, .max = 16, .integer = true},
      {.name = "width", .choices = {}, .min = 1, .max = 128, .integer = true},
      {.name = "rate", .choices = {}, .min = 1e-5, .max = 1, .scale = Parameter::Scale::log}};
  program.search = {.method = method, .samples = 60, .seed = seed};
  Rng noise(seed);
  double best = HUGE_VAL;
  if (!adaptive(program.search)) {
    const auto points = propose(program);
    for (const auto& values : *points) best = std::min(best, noisy_training(values, noise));
    return best;
  }
  const auto proposer = make_proposer(program);
  for (std::int64_t trial = 1; const auto proposal = proposer->ask(); ++trial) {
    const double value = noisy_training(proposal->params, noise);
    best = std::min(best, value);
    proposer->tell({trial, *proposal, TrialReport::State::done, {-value}});
  }
  return best;
}

double median_of_training(Search::Method method) {
  std::vector<double> values;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) values.push_back(least_of_training(method, seed));
  std::ranges::sort(values);
  return values[2];
}

TEST(Tpe, BeatsChance) {
  const double tpe = median_of_training(Search::Method::tpe),
               chance = median_of_training(Search::Method::random);
  EXPECT_LT(tpe, 0.6 * chance) << tpe << " and " << chance;
  EXPECT_LT(tpe, 0.25);
}

}  // namespace
}  // namespace berth::experiment
