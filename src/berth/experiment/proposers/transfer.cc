#include "berth/experiment/proposers/transfer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "berth/base/units.h"
#include "berth/experiment/proposers/halving.h"
#include "berth/experiment/proposers/sampler.h"
#include "berth/experiment/proposers/space.h"
#include "berth/experiment/proposers/untried.h"

namespace berth::experiment {
namespace {

constexpr double kFar = 0.05;  // the distance of two good points, as a part of a range

bool far(const std::vector<Parameter>& params, const Parts& one, const Parts& other) {
  for (std::size_t at = 0; at < params.size(); ++at) {
    if (one[at] == other[at]) continue;
    if (!params[at].choices.empty() || !one[at] || !other[at]) return true;
    if (std::abs(*one[at] - *other[at]) >= kFar) return true;
  }
  return false;
}

struct Candidate {
  const EarlierTrial* trial;
  Parts parts;
  std::size_t level;  // of its budget
};

/// The different points of each run, the best first.
std::map<std::string, std::vector<Candidate>> ranked(const Program& program) {
  struct Scored {
    Candidate candidate;
    Merit merit;
  };
  std::map<std::string, std::vector<Scored>> runs;
  for (const auto& trial : program.earlier) {
    const auto report =
        report_of(program, 0, {"", trial.params}, TrialReport::State::done, trial.metrics);
    if (report.scores.empty()) continue;
    const auto& budget = program.search.budget;
    const auto level = budget ? level_of(*budget, trial.params) : 0;
    if (level)
      runs[trial.run].push_back(
          {{&trial, parts_of(program.params, trial.params), *level}, merit_of(report)});
  }
  std::map<std::string, std::vector<Candidate>> good;
  for (const auto& [run, scored] : runs) {
    std::vector<const Merit*> merits;
    for (const auto& each : scored) merits.push_back(&each.merit);
    auto& points = good[run];
    for (const auto& front : fronts(merits, merits.size()))
      for (const auto at : front) points.push_back(scored[at].candidate);
    std::ranges::stable_sort(points, std::greater(), &Candidate::level);
  }
  return good;
}

/// Returns true if the values include all of the others. A growing space adds some.
bool has_values(const Values& values, const Values& others) {
  return std::ranges::all_of(others, [&](const auto& other) {
    const auto* value = find_value(values, other.first);
    return value != nullptr && *value == other.second;
  });
}

/// The label with another trial number: "4@9" for "1@9" and 3 more.
std::string relabelled(const std::string& label, std::int64_t more) {
  const auto end = std::min(label.find('@'), label.size());
  const auto number = parse_integer(label.substr(0, end));
  return number ? fmt::format("{}{}", *number + more, label.substr(end)) : label;
}

}  // namespace

std::optional<Values> adapted(const Program& program, const Values& values,
                              const Numbers& metrics) {
  if (scores_of(program, metrics).empty()) return std::nullopt;
  Values point;
  bool common = false;
  for (const auto& parameter : program.params) {
    if (!present(parameter, point)) continue;
    const auto* value = find_value(values, parameter.name);
    const bool fixed = parameter.choices.size() == 1;
    if (value == nullptr || fixed) {
      point.emplace_back(parameter.name, value_at(parameter, parameter.choices.empty() ? 0.5 : 0));
      continue;
    }
    auto own = value_of(parameter, *value, program.types);
    if (!own) return std::nullopt;
    point.emplace_back(parameter.name, *std::move(own));
    common = true;
  }
  if (!common) return std::nullopt;
  if (const auto& budget = program.search.budget) {
    // A run without a budget trained each trial to its end.
    const auto* amount = find_value(values, budget->parameter);
    if (amount != nullptr && !level_of(*budget, values)) return std::nullopt;
    point.emplace_back(budget->parameter, amount ? *amount : budget_text(*budget, budget->max));
  }
  return point;
}

std::vector<EarlierTrial> good_trials(const Program& program) {
  const auto runs = ranked(program);
  std::vector<Candidate> chosen;
  const auto choose = [&](const std::vector<Candidate>& run, bool only_far) {
    for (const auto& candidate : run) {
      const bool is_new = std::ranges::all_of(chosen, [&](const Candidate& other) {
        return only_far ? far(program.params, candidate.parts, other.parts)
                        : candidate.parts != other.parts;
      });
      if (!is_new) continue;
      chosen.push_back(candidate);
      return true;
    }
    return false;
  };
  for (const bool only_far : {true, false})
    for (bool more = true; more;) {
      more = false;
      for (const auto& [name, run] : runs)
        if (chosen.size() < kRemeasured) more = choose(run, only_far) || more;
    }
  std::vector<EarlierTrial> trials;
  for (const auto& candidate : chosen) trials.push_back(*candidate.trial);
  return trials;
}

Transfer::Transfer(const Program& program, Make make)
    : program_([&] {
        Program with = program;
        with.earlier = good_trials(program);
        const auto samples = program.search.samples;
        if (samples > 0 && std::ssize(with.earlier) > samples)
          with.earlier.resize(static_cast<std::size_t>(samples));
        if (const auto& budget = program.search.budget)
          for (auto& trial : with.earlier)
            trial.params.back().second = budget_text(*budget, budget->max);
        return with;
      }()),
      make_(make),
      measured_(program_.earlier.size()) {
  begin();
}

void Transfer::begin() {
  Program cold = program_;
  cold.earlier.clear();
  // Without a number of samples there is one whole round.
  if (cold.search.budget && cold.search.samples > std::ssize(measured_))
    cold.search.samples -= std::ssize(measured_);
  search_ = make_(cold);
  for (const auto& [number, report] : reports_)
    if (std::ranges::find(measured_, number) == measured_.end()) tell_search(report);
}

/// The number of trials before this one that measured an earlier point.
std::int64_t Transfer::measured_before(std::int64_t number) const {
  return std::ranges::count_if(
      measured_, [&](std::int64_t measured) { return measured > 0 && measured < number; });
}

/// Reports a trial with the number that it has without the points of earlier runs.
void Transfer::tell_search(const TrialReport& trial) {
  TrialReport report = trial;
  report.number -= measured_before(trial.number);
  report.trial.label = relabelled(trial.trial.label, report.number - trial.number);
  search_->tell(report);
}

void Transfer::tell(const TrialReport& trial) {
  const auto [at, is_new] = reports_.try_emplace(trial.number, trial);
  if (!is_new && at->second.state != TrialReport::State::open) return;
  at->second = trial;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    if (!has_values(trial.trial.params, program_.earlier[i].params)) continue;
    if (measured_[i] == 0 || trial.number < measured_[i]) {
      measured_[i] = trial.number;
      begin();
    }
    if (measured_[i] != trial.number) break;  // the search itself came to this point
    if (i == 0) compare(trial);
    return;
  }
  tell_search(trial);
}

/// Notes that the best earlier point has the same score here.
void Transfer::compare(const TrialReport& trial) {
  const auto& earlier = program_.earlier.front();
  if (trial.scores.empty() || trial.scores != scores_of(program_, earlier.metrics)) return;
  notes_.push_back(fmt::format("warm start: the best trial of {} has the same {} here", earlier.run,
                               program_.goal->metric));
}

std::vector<std::string> Transfer::take_notes() {
  return std::exchange(notes_, {});
}

/// Returns true if the search comes to an earlier point because no other point is left.
bool Transfer::exhausted(const Values& proposed) const {
  if (program_.search.budget || !has_end(program_)) return false;
  const Parts parts = parts_of(program_.params, proposed);
  if (std::ranges::none_of(program_.earlier, [&](const EarlierTrial& trial) {
        return parts_of(program_.params, trial.params) == parts;
      }))
    return false;
  std::set<Parts> tried;
  for (const auto& [number, report] : reports_)
    tried.insert(parts_of(program_.params, report.trial.params));
  return !nearest_untried(program_.params, proposed, tried);
}

std::optional<Proposal> Transfer::ask() const {
  const std::int64_t last = reports_.empty() ? 0 : reports_.rbegin()->first;
  const std::int64_t samples = program_.search.samples;
  const auto& budget = program_.search.budget;
  if (!budget && last >= samples) return std::nullopt;
  for (std::size_t i = 0; i < measured_.size(); ++i)
    if (measured_[i] == 0) {
      std::string label = fmt::format("{}", last + 1);
      if (budget) label += "@" + number_text(budget->max, budget->min, budget->max);
      return Proposal{std::move(label), program_.earlier[i].params};
    }
  if (samples > 0 && samples == std::ssize(measured_)) return std::nullopt;
  auto next = search_->ask();
  if (!next) return std::nullopt;
  if (exhausted(next->params)) return std::nullopt;
  next->label = relabelled(next->label, std::ssize(measured_));
  return next;
}

}  // namespace berth::experiment
