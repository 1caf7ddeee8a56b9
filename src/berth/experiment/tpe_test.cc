#include "berth/experiment/tpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>

#include "berth/base/units.h"
#include "berth/experiment/space.h"

namespace berth::experiment {
namespace {

Parameter range(std::string name, double min, double max, bool integer = false) {
  return {.name = std::move(name), .choices = {}, .min = min, .max = max, .integer = integer};
}

double number(const Values& values, std::string_view name) {
  return *parse_number(*find_value(values, name));
}

std::vector<double> numbers_of(const Values& values) {
  std::vector<double> numbers;
  for (const auto& [name, value] : values) numbers.push_back(*parse_number(value));
  return numbers;
}

/// What is to be made small, over a space of its own.
struct Function {
  std::string name;
  std::vector<Parameter> params;
  std::function<double(const Values&, Rng&)> value;
};

double branin(const Values& values, Rng&) {
  constexpr double pi = std::numbers::pi;
  const double x = number(values, "x"), y = number(values, "y");
  const double a = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
  return a * a + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

double hartmann6(const Values& values, Rng&) {
  constexpr double kA[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                               {0.05, 10, 17, 0.1, 8, 14},
                               {3, 3.5, 1.7, 10, 17, 8},
                               {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kP[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                               {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                               {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                               {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  constexpr double kAlpha[4] = {1, 1.2, 3, 3.2};
  const auto x = numbers_of(values);
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    double inner = 0;
    for (int j = 0; j < 6; ++j)
      inner += kA[i][j] * std::pow(x[static_cast<std::size_t>(j)] - kP[i][j], 2);
    sum -= kAlpha[i] * std::exp(-inner);
  }
  return sum;
}

double rosenbrock(const Values& values, Rng&) {
  const auto x = numbers_of(values);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
  return sum;
}

double ackley(const Values& values, Rng&) {
  const auto x = numbers_of(values);
  double squares = 0, waves = 0;
  for (const double each : x) {
    squares += each * each;
    waves += std::cos(2 * std::numbers::pi * each);
  }
  const auto n = static_cast<double>(x.size());
  return -20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(waves / n) + 20 + std::numbers::e;
}

/// Three choices, two integers and a log scale, heard through noise.
double mixed(const Values& values, Rng& noise) {
  const std::string& kind = *find_value(values, "kind");
  const double offset = kind == "b" ? 0 : kind == "a" ? 1 : 2;
  const double layers = number(values, "layers"), width = number(values, "width");
  const double rate = std::log10(number(values, "rate"));
  return offset + std::pow((layers - 7) / 4, 2) + std::pow((width - 48) / 32, 2) +
         std::pow(rate + 2.5, 2) + 0.1 * (noise.uniform() - 0.5);
}

std::vector<Parameter> box(int dimensions, double min, double max) {
  std::vector<Parameter> params;
  for (int i = 0; i < dimensions; ++i) params.push_back(range(fmt::format("x{}", i), min, max));
  return params;
}

std::vector<Function> functions() {
  Parameter rate = range("rate", 1e-5, 1);
  rate.scale = Parameter::Scale::log;
  return {{"Branin", {range("x", -5, 10), range("y", 0, 15)}, branin},
          {"Hartmann-6", box(6, 0, 1), hartmann6},
          {"Rosenbrock-4", box(4, -5, 10), rosenbrock},
          {"Ackley-5", box(5, -32.768, 32.768), ackley},
          {"mixed",
           {{.name = "kind", .choices = {"a", "b", "c"}},
            range("layers", 1, 16, true),
            range("width", 1, 128, true),
            rate},
           mixed}};
}

constexpr std::int64_t kTrials = 100;

double best_by_tpe(const Function& function, std::uint64_t seed) {
  Program program;
  program.params = function.params;
  program.search = {.method = Search::Method::tpe, .samples = kTrials, .seed = seed};
  const auto proposer = make_proposer(program);
  Rng noise(seed);
  double best = HUGE_VAL;
  for (std::int64_t trial = 1; const auto proposal = proposer->ask(); ++trial) {
    const double value = function.value(proposal->params, noise);
    best = std::min(best, value);
    proposer->tell({trial, *proposal, TrialReport::State::done, {-value}});
  }
  return best;
}

double best_by_chance(const Function& function, std::uint64_t seed) {
  Program program;
  program.params = function.params;
  program.search = {.method = Search::Method::random, .samples = kTrials, .seed = seed};
  Rng noise(seed);
  double best = HUGE_VAL;
  const auto trials = propose(program);
  for (const auto& values : *trials) best = std::min(best, function.value(values, noise));
  return best;
}

double median(const std::function<double(std::uint64_t)>& of) {
  std::vector<double> values;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) values.push_back(of(seed));
  std::ranges::sort(values);
  return (values[9] + values[10]) / 2;
}

TEST(Tpe, BeatsChanceOnTheStandardFunctions) {
  int better = 0;
  for (const auto& function : functions()) {
    const double tpe = median([&](auto seed) { return best_by_tpe(function, seed); });
    const double chance = median([&](auto seed) { return best_by_chance(function, seed); });
    better += tpe < chance ? 1 : 0;
    fmt::print("{}: {:.4g} by tpe, {:.4g} by chance, after {} trials, the median of 20 seeds\n",
               function.name, tpe, chance, kTrials);
  }
  EXPECT_GE(better, 4);
}

}  // namespace
}  // namespace berth::experiment
