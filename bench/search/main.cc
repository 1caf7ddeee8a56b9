// Searches on functions, in process: thousands of trials take seconds. bench/search.py calls it.
//
//   berth-search-bench functions                           the functions and their spaces, as JSON
//   berth-search-bench run METHOD FUNCTION SEED PARALLEL SAMPLES [AT…]
//       the least value (of several goals the hypervolume) after AT trials; the seconds of all asks
//   berth-search-bench value      reads "FUNCTION NAME=VALUE…" a line, writes the function's values
//   berth-search-bench volume FUNCTION        the hypervolume of the points that it reads, one a
//   line
//   berth-search-bench warm SEEDS METHOD…  the rows of a table of cold and warm starts, see
//   warm_start.h
#include <chrono>
#include <cmath>
#include <iostream>
#include <sstream>

#include "berth/base/json_writer.h"
#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/proposers/proposer.h"
#include "search/functions.h"
#include "search/warm_start.h"

namespace berth::bench {
namespace {

using experiment::TrialReport;

const Function* find(std::string_view name) {
  for (const auto& function : functions())
    if (function.name == name) return &function;
  return nullptr;
}

experiment::Program program_of(const Function& function, const std::string& method,
                               std::uint64_t seed, std::int64_t parallel, std::int64_t samples) {
  experiment::Program program;
  program.params = function.params;
  program.parallel = parallel;
  const experiment::Goal goal{.metric = "value", .maximize = false};
  program.goal = goal;
  program.further_goals.assign(function.reference.empty() ? 0 : function.reference.size() - 1,
                               goal);
  const auto known = experiment::Search::kMethodNames.value(method);
  if (!known) throw std::invalid_argument("no method " + method);
  program.search = {.method = *known, .samples = samples, .seed = seed};
  return program;
}

struct Course {
  std::vector<std::vector<double>> values;  // of the trials in the order in which they ended
  double asked_s = 0;
};

/// As many trials side by side as given, which end in an order by the lot.
Course follow(const Function& function, const experiment::Program& program) {
  using Clock = std::chrono::steady_clock;
  Course course;
  if (!adaptive(program.search)) {
    const auto trials = propose(program);
    for (const auto& trial : *trials) course.values.push_back(function.values(trial));
    return course;
  }
  const auto proposer = make_proposer(program);
  std::vector<TrialReport> open;
  Rng rng(program.search.seed);
  std::int64_t number = 0;
  for (;;) {
    while (std::ssize(open) < program.parallel) {
      const auto began = Clock::now();
      const auto proposal = proposer->ask();
      course.asked_s += std::chrono::duration<double>(Clock::now() - began).count();
      if (!proposal) break;
      open.push_back({.number = ++number, .trial = *proposal});
      proposer->tell(open.back());
    }
    if (open.empty()) return course;
    const auto at = open.begin() + static_cast<std::ptrdiff_t>(rng.below(open.size()));
    at->state = TrialReport::State::done;
    course.values.push_back(function.values(at->trial.params));
    for (const double value : course.values.back()) at->scores.push_back(-value);
    proposer->tell(*at);
    open.erase(at);
  }
}

double outcome(const Function& function, const Course& course, std::size_t after) {
  std::vector<std::vector<double>> values(
      course.values.begin(),
      course.values.begin() + static_cast<std::ptrdiff_t>(std::min(after, course.values.size())));
  if (!function.reference.empty()) return hypervolume(std::move(values), function.reference);
  double least = HUGE_VAL;
  for (const auto& value : values) least = std::min(least, value[0]);
  return least;
}

int run(const std::vector<std::string>& words) {
  const Function* function = find(words[3]);
  if (function == nullptr) throw std::invalid_argument("no function " + words[3]);
  const auto program = program_of(*function, words[2], std::stoull(words[4]), std::stoll(words[5]),
                                  std::stoll(words[6]));
  const Course course = follow(*function, program);
  JsonWriter json;
  json.object().add("method", words[2]).add("function", words[3]).key("best").object();
  for (std::size_t i = 7; i < words.size(); ++i)
    json.add(words[i], outcome(*function, course, std::stoull(words[i])));
  json.end().add("trials", static_cast<std::int64_t>(course.values.size()));
  std::cout << json.add("asked_s", course.asked_s).end().take() << "\n";
  return 0;
}

int list() {
  JsonWriter json;
  json.array();
  for (const auto& function : functions()) {
    json.object().add("name", function.name);
    json.add("goals",
             static_cast<std::int64_t>(std::max<std::size_t>(1, function.reference.size())));
    json.key("reference").array();
    for (const double each : function.reference) json.value(each);
    json.end().key("params").array();
    for (const auto& parameter : function.params) {
      json.object().add("name", parameter.name).add("min", parameter.min).add("max", parameter.max);
      json.add("integer", parameter.integer);
      json.add("log", parameter.scale == experiment::Parameter::Scale::log);
      json.key("choices").array();
      for (const auto& choice : parameter.choices) json.value(choice);
      json.end().key("when").array();
      for (const auto& condition : parameter.when)
        json.value(condition.parameter).value(condition.values[0]);
      json.end().end();
    }
    json.end().end();
  }
  std::cout << json.end().take() << "\n";
  return 0;
}

int values() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    experiment::Values point;
    while (words >> word)
      point.emplace_back(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
    const Function* function = find(name);
    if (function == nullptr) throw std::invalid_argument("no function " + name);
    for (const double value : function->values(point)) std::cout << format_number(value) << " ";
    std::cout << std::endl;
  }
  return 0;
}

int volume(const std::string& name) {
  const Function* function = find(name);
  if (function == nullptr) throw std::invalid_argument("no function " + name);
  std::vector<std::vector<double>> points;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    points.emplace_back();
    for (double value = 0; words >> value;) points.back().push_back(value);
  }
  std::cout << format_number(hypervolume(std::move(points), function->reference)) << "\n";
  return 0;
}

}  // namespace
}  // namespace berth::bench

int main(int count, char** arguments) try {
  const std::vector<std::string> words(arguments, arguments + count);
  if (count == 2 && words[1] == "functions") return berth::bench::list();
  if (count == 2 && words[1] == "value") return berth::bench::values();
  if (count == 3 && words[1] == "volume") return berth::bench::volume(words[2]);
  if (count >= 7 && words[1] == "run") return berth::bench::run(words);
  if (count >= 4 && words[1] == "warm") {
    berth::bench::write_warm_starts(std::stoull(words[2]), {words.begin() + 3, words.end()});
    return 0;
  }
  std::cerr << "berth-search-bench functions | value | run METHOD FUNCTION SEED PARALLEL SAMPLES "
               "[AT...] | warm SEEDS METHOD...\n";
  return 2;
} catch (const std::exception& error) {
  std::cerr << "berth-search-bench: " << error.what() << "\n";
  return 2;
}
