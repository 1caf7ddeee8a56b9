#include "berth/experiment/proposers/untried.h"

#include <algorithm>
#include <cmath>

#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

/// The parameter without the number of points of a grid, which only a grid keeps to.
Parameter all_values(Parameter parameter) {
  parameter.points = 0;
  return parameter;
}

/// The index of the nearest value, as of grid_value().
std::int64_t index_of(const Parameter& parameter, double part) {
  std::int64_t low = 0, high = grid_size(parameter) - 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const auto at = part_of(parameter, grid_value(parameter, middle));
    if (!at || *at + share(parameter, *at) / 2 < part)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

class Neighbours {
 public:
  explicit Neighbours(const std::vector<Parameter>& params) {
    for (const auto& parameter : params) params_.push_back(all_values(parameter));
  }

  /// Points that differ in one parameter: the next lower and the next higher value of a range, each
  /// other choice. A parameter that a choice adds has its first value.
  std::vector<Values> of(const Values& point) const {
    std::vector<Values> found;
    for (const auto& parameter : params_) {
      const auto* value = find_value(point, parameter.name);
      if (value == nullptr) continue;
      if (!parameter.choices.empty()) {
        for (const auto& choice : parameter.choices)
          if (choice != *value) found.push_back(changed(point, parameter, choice));
        continue;
      }
      const std::int64_t at = index_of(parameter, part_of(parameter, *value).value_or(0.5));
      for (const std::int64_t other : {at - 1, at + 1})
        if (other >= 0 && other < grid_size(parameter))
          found.push_back(changed(point, parameter, grid_value(parameter, other)));
    }
    return found;
  }

 private:
  Values changed(const Values& point, const Parameter& which, const std::string& to) const {
    Values values;
    for (const auto& parameter : params_) {
      if (!present(parameter, values)) continue;
      const auto* before = find_value(point, parameter.name);
      values.emplace_back(parameter.name, parameter.name == which.name ? to
                                          : before != nullptr          ? *before
                                                                       : grid_value(parameter, 0));
    }
    return values;
  }

  std::vector<Parameter> params_;
};

double distance(const std::vector<Parameter>& params, const Parts& one, const Parts& other) {
  double sum = 0;
  for (std::size_t at = 0; at < params.size(); ++at)
    if (one[at] != other[at])
      sum +=
          params[at].choices.empty() && one[at] && other[at] ? std::abs(*one[at] - *other[at]) : 1;
  return sum;
}

}  // namespace

bool has_end(const Program& program) {
  const auto& optional = program.optional;
  return !program.params.empty() &&
         std::ranges::all_of(program.params, [&](const Parameter& parameter) {
           const bool added = parameter.when.empty() &&
                              std::ranges::find(optional, parameter.name) != optional.end();
           return !added && grid_size(all_values(parameter)) > 0;
         });
}

std::optional<Values> nearest_untried(const std::vector<Parameter>& params, Values point,
                                      const std::set<Parts>& tried) {
  const Parts from = parts_of(params, point);
  if (!tried.contains(from)) return point;
  const Neighbours neighbours(params);
  std::set<Parts> seen{from};
  std::set<std::pair<double, Values>> next{{0, std::move(point)}};  // the nearest first
  while (!next.empty()) {
    const Values nearest = std::move(next.extract(next.begin()).value().second);
    if (!tried.contains(parts_of(params, nearest))) return nearest;
    for (auto& each : neighbours.of(nearest))
      if (Parts parts = parts_of(params, each); seen.insert(parts).second)
        next.emplace(distance(params, from, parts), std::move(each));
  }
  return std::nullopt;
}

}  // namespace berth::experiment
