#include "search/warm_start.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <tuple>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/proposers/proposer.h"
#include "berth/experiment/proposers/space.h"
#include "berth/experiment/proposers/transfer.h"
#include "search/functions.h"

namespace berth::bench {
namespace {

using experiment::Parameter;
using experiment::Program;
using experiment::Values;

constexpr double kEpochs = 9;  // of a trial with the whole budget
constexpr std::int64_t kHeadStart = 3;
constexpr std::int64_t kAfter[] = {10, 25, 50};
constexpr std::int64_t kEarlierTrials = 30;

using Loss = std::function<double(const Values&)>;

struct Problem {
  std::vector<Parameter> params;
  Loss loss;
};

/// An earlier run, and the search that begins with it.
struct Pair {
  std::string name;
  std::vector<Problem> earlier;
  Problem now;
  bool random_earlier = false;  // the earlier trials are random points, not those of a search
  double noise = 0;             // the standard deviation of what a trial reports
};

Parameter range(std::string name, double min, double max) {
  return {.name = std::move(name), .choices = {}, .min = min, .max = max};
}

double number(const Values& values, std::string_view name) {
  return *parse_number(*experiment::find_value(values, name));
}

Problem known(std::string_view name) {
  for (const auto& function : functions())
    if (function.name == name)
      return {function.params,
              [&function](const Values& values) { return function.values(values).front(); }};
  throw std::invalid_argument("no function " + std::string(name));
}

/// A bowl in x and y whose lowest point is at (x, y).
Problem bowl(double x, double y, double min = 0, double max = 1) {
  return {{range("x", min, max), range("y", min, max)}, [=](const Values& values) {
            return std::pow(number(values, "x") - x, 2) + std::pow(number(values, "y") - y, 2);
          }};
}

/// The same with a third parameter, which matters as much.
Problem deeper_bowl() {
  Problem problem = bowl(0.3, 0.7);
  problem.params.push_back(range("z", 0, 1));
  problem.loss = [flat = problem.loss](const Values& values) {
    return flat(values) + std::pow(number(values, "z") - 0.6, 2);
  };
  return problem;
}

Problem scaled(Problem problem, double factor, double level) {
  problem.loss = [=, loss = problem.loss](const Values& values) {
    return level + factor * loss(values);
  };
  return problem;
}

/// The same order of all points on another scale.
Problem logarithmic(Problem problem) {
  problem.loss = [loss = problem.loss](const Values& values) {
    return std::log(1e-3 + loss(values));
  };
  return problem;
}

/// The loss where each number is a part of its range farther.
Problem shifted(Problem problem, double part) {
  problem.loss = [=, loss = problem.loss, params = problem.params](Values values) {
    for (const auto& parameter : params)
      if (parameter.choices.empty() && experiment::find_value(values, parameter.name))
        for (auto& [name, value] : values)
          if (name == parameter.name)
            value = format_number(*parse_number(value) - part * (parameter.max - parameter.min));
    return loss(values);
  };
  return problem;
}

Problem within(Problem problem, double from, double to) {
  for (auto& parameter : problem.params) {
    const double min = std::lerp(parameter.min, parameter.max, from);
    parameter.max = std::lerp(parameter.min, parameter.max, to);
    parameter.min = min;
  }
  return problem;
}

std::vector<Pair> all_pairs() {
  return {
      {"bowl, the same", {bowl(0.3, 0.7)}, bowl(0.3, 0.7)},
      {"Branin, the same", {known("branin")}, known("branin")},
      {"Hartmann-3, the same", {known("hartmann3")}, known("hartmann3")},
      {"Hartmann-6, the same, random trials", {known("hartmann6")}, known("hartmann6"), true},
      {"mixed types, the same", {known("mixed")}, known("mixed")},
      {"conditions, the same", {known("conditional")}, known("conditional")},
      {"Rastrigin-5, the same", {known("rastrigin5")}, known("rastrigin5")},
      {"bowl, shifted by 5 %", {bowl(0.3, 0.7)}, bowl(0.35, 0.75)},
      {"Hartmann-3, shifted by 10 %", {shifted(known("hartmann3"), 0.1)}, known("hartmann3")},
      {"Branin, scaled", {scaled(known("branin"), 1000, -5e4)}, known("branin")},
      {"bowl, logarithm of the loss", {logarithmic(bowl(0.3, 0.7))}, bowl(0.3, 0.7)},
      {"bowl, wider ranges", {bowl(0.3, 0.7)}, bowl(0.3, 0.7, -1, 2)},
      {"Branin, narrower ranges", {known("branin")}, within(known("branin"), 0, 0.6)},
      {"bowl, an added parameter", {bowl(0.3, 0.7)}, deeper_bowl()},
      {"bowl, a removed parameter", {deeper_bowl()}, bowl(0.3, 0.7)},
      {"bowl, the opposite loss", {scaled(bowl(0.3, 0.7), -1, 1)}, bowl(0.3, 0.7)},
      {"bowl, one run of the same, one of another",
       {bowl(0.3, 0.7), bowl(0.9, 0.1)},
       bowl(0.3, 0.7)},
      {"bowl with noise, the same", {bowl(0.3, 0.7)}, bowl(0.3, 0.7), false, 0.02},
  };
}

struct Course {
  std::vector<experiment::EarlierTrial> trials;
  std::vector<double> losses;  // without noise; HUGE_VAL: of a part of the budget
};

Program program_of(const Problem& problem, experiment::Search::Method method, std::uint64_t seed,
                   std::int64_t samples) {
  Program program;
  program.params = problem.params;
  program.parallel = 1;
  program.goal = experiment::Goal{.metric = "loss", .maximize = false};
  program.search = {.method = method, .samples = samples, .seed = seed};
  if (has_budget(method)) {
    program.search.budget = experiment::Budget{.parameter = "epochs", .min = 1, .max = kEpochs};
    program.search.model = true;
  }
  return program;
}

/// A number with a standard deviation of 1, the same for equal points.
double noise_at(const Values& point) {
  std::uint64_t seed = 71;
  for (const auto& [name, value] : point)
    for (const char each : name + "=" + value + ";")
      seed = mix(seed ^ static_cast<unsigned char>(each));
  Rng rng(seed);
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return sum;
}

/// Runs trials one by one. With a part of the budget a loss is higher.
Course follow(const Problem& problem, const Program& program, double noise) {
  Course course;
  const auto proposer = make_proposer(program);
  for (std::int64_t number = 1; number <= program.search.samples; ++number) {
    const auto proposal = proposer->ask();
    if (!proposal) break;
    experiment::TrialReport report{.number = number, .trial = *proposal};
    proposer->tell(report);
    Values point = proposal->params;
    double epochs = kEpochs;
    if (program.search.budget) {
      epochs = *parse_number(point.back().second);
      point.pop_back();
    }
    const double loss = problem.loss(point);
    double reported = loss + 0.3 * (kEpochs - epochs) / kEpochs * std::abs(loss);
    if (noise > 0) reported += noise * noise_at(point);
    course.losses.push_back(epochs < kEpochs ? HUGE_VAL : loss);
    course.trials.push_back({proposal->params, {{"loss", reported}}});
    report.state = experiment::TrialReport::State::done;
    report.scores = {-reported};
    proposer->tell(report);
  }
  return course;
}

/// The trials of one earlier run: halving for halving, hyperband for hyperband, gp for all others.
std::vector<experiment::EarlierTrial> earlier_run(const Pair& pair, std::size_t run,
                                                  experiment::Search::Method method,
                                                  std::uint64_t seed) {
  const Problem& problem = pair.earlier[run];
  Program program = program_of(problem, method, 1000 * (run + 1) + seed, kEarlierTrials);
  if (!pair.random_earlier || has_budget(method))
    return follow(problem, program, pair.noise).trials;
  program.search.method = experiment::Search::Method::random;
  std::vector<experiment::EarlierTrial> trials;
  const auto points = experiment::propose(program);
  for (const auto& point : *points) trials.push_back({point, {{"loss", problem.loss(point)}}});
  return trials;
}

std::vector<experiment::EarlierTrial> earlier_of(const Pair& pair,
                                                 experiment::Search::Method method,
                                                 std::uint64_t seed, const Program& now) {
  using Key = std::tuple<std::string, std::size_t, experiment::Search::Method, std::uint64_t>;
  static std::map<Key, std::vector<experiment::EarlierTrial>> kept;
  if (!has_budget(method)) method = experiment::Search::Method::gp;
  std::vector<experiment::EarlierTrial> earlier;
  for (std::size_t run = 0; run < pair.earlier.size(); ++run) {
    auto& trials = kept[{pair.name, run, method, seed}];
    if (trials.empty()) trials = earlier_run(pair, run, method, seed);
    for (const auto& trial : trials)
      if (auto point = experiment::adapted(now, trial.params, trial.metrics))
        earlier.push_back({std::move(*point), trial.metrics, fmt::format("{}", run + 1)});
  }
  return earlier;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double best_after(const Course& course, std::int64_t trials) {
  const auto count = std::min(trials, std::ssize(course.losses));
  return *std::min_element(course.losses.begin(), course.losses.begin() + count);
}

void write_pair(const Pair& pair, experiment::Search::Method method, std::uint64_t seeds) {
  std::vector<Course> cold, warm;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Program program = program_of(pair.now, method, seed, kAfter[2]);
    cold.push_back(follow(pair.now, program, pair.noise));
    program.earlier = earlier_of(pair, method, seed, program);
    warm.push_back(follow(pair.now, program, pair.noise));
  }
  std::cout << "| " << experiment::Search::kMethodNames.name(method) << " | " << pair.name;
  bool worse = false;
  for (const auto after : kAfter) {
    std::vector<double> of_cold, of_warm;
    for (const auto& course : cold) of_cold.push_back(best_after(course, after - kHeadStart));
    for (const auto& course : warm) of_warm.push_back(best_after(course, after));
    std::cout << fmt::format(" | {:.2g} | {:.2g}", median(of_cold), median(of_warm));
    worse = worse || median(of_warm) > median(of_cold);
  }
  std::cout << (worse ? " | worse |" : " | |") << std::endl;
}

}  // namespace

void write_warm_starts(std::uint64_t seeds, const std::vector<std::string>& methods) {
  for (const auto& pair : all_pairs())
    for (const auto& name : methods) {
      const auto method = experiment::Search::kMethodNames.value(name);
      if (!method) throw std::invalid_argument("no method " + name);
      write_pair(pair, *method, seeds);
    }
}

}  // namespace berth::bench
