#include <algorithm>
#include <cmath>

#include "berth/base/checked.h"
#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/program.h"

namespace berth::experiment {
namespace {

/// Six significant digits: what a person can read, and more than a search can tell apart. All of
/// them where six would leave the range.
std::string number_text(const Parameter& parameter, double value) {
  const double rounded = std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
  const bool inside = parameter.min <= rounded && rounded <= parameter.max;
  return format_number(inside ? rounded : value);
}

/// The point at `part` (0..1) of the way through the range.
std::string at(const Parameter& parameter, double part) {
  const auto along = [&](double min, double max) { return std::lerp(min, max, part); };
  double value = parameter.scale == Parameter::Scale::log
                     ? std::exp(along(std::log(parameter.min), std::log(parameter.max)))
                     : along(parameter.min, parameter.max);
  value = std::clamp(value, parameter.min, parameter.max);
  if (parameter.integer) return fmt::format("{}", std::llround(value));
  return number_text(parameter, value);
}

std::string draw(const Parameter& parameter, Rng& rng) {
  if (!parameter.choices.empty()) return parameter.choices[rng.below(parameter.choices.size())];
  if (parameter.integer && parameter.scale == Parameter::Scale::linear) {
    const auto min = static_cast<std::int64_t>(parameter.min);
    const auto count = static_cast<std::uint64_t>(static_cast<std::int64_t>(parameter.max) - min);
    return fmt::format("{}", min + static_cast<std::int64_t>(rng.below(count + 1)));
  }
  return at(parameter, rng.uniform());
}

std::int64_t grid_size(const Parameter& parameter) {
  if (!parameter.choices.empty()) return static_cast<std::int64_t>(parameter.choices.size());
  const double integers = parameter.max - parameter.min + 1;
  if (parameter.integer) {
    const auto all = static_cast<std::int64_t>(std::min(integers, 1e15));
    return parameter.points > 0 ? std::min(parameter.points, all) : all;
  }
  return parameter.points;
}

std::string grid_value(const Parameter& parameter, std::int64_t index) {
  if (!parameter.choices.empty()) return parameter.choices[static_cast<std::size_t>(index)];
  const std::int64_t size = grid_size(parameter);
  if (parameter.integer && parameter.points == 0)
    return fmt::format("{}", static_cast<std::int64_t>(parameter.min) + index);
  return at(parameter, size == 1 ? 0 : static_cast<double>(index) / static_cast<double>(size - 1));
}

Values grid_point(const Program& program, std::int64_t trial) {
  Values values;  // mixed radix, the last parameter turning fastest
  for (auto parameter = program.params.rbegin(); parameter != program.params.rend(); ++parameter) {
    const std::int64_t size = grid_size(*parameter);
    values.emplace_back(parameter->name, grid_value(*parameter, trial % size));
    trial /= size;
  }
  std::ranges::reverse(values);
  return values;
}

}  // namespace

Result<std::int64_t> count_trials(const Program& program) {
  const bool grid = program.search.method == Search::Method::grid;
  std::int64_t total = grid ? 1 : program.search.samples;
  for (const auto& parameter : program.params) {
    const std::int64_t size = grid ? grid_size(parameter) : 1;
    if (size == 0)
      return fail(ErrorKind::invalid, "{}: a grid needs the number of points of a range, n: 5",
                  parameter.name);
    total = checked_mul(total, size).value_or(kMostTrials + 1);
    if (total > kMostTrials) break;
  }
  if (total > kMostTrials)
    return fail(ErrorKind::invalid, "{} more than {} trials", grid ? "the grid has" : "these are",
                kMostTrials);
  const auto width = static_cast<std::int64_t>(program.params.size());
  if (width > 0 && total > kMostValues / width)
    return fail(ErrorKind::invalid, "{} trials of {} parameters are more than {} values", total,
                width, kMostValues);
  return total;
}

Result<std::vector<Values>> propose(const Program& program) {
  BERTH_ASSIGN(const std::int64_t total, count_trials(program));
  Rng rng(program.search.seed);
  std::vector<Values> trials(static_cast<std::size_t>(total));
  for (std::int64_t trial = 0; trial < total; ++trial) {
    Values& values = trials[static_cast<std::size_t>(trial)];
    if (program.search.method == Search::Method::grid)
      values = grid_point(program, trial);
    else
      for (const auto& parameter : program.params)
        values.emplace_back(parameter.name, draw(parameter, rng));
  }
  return trials;
}

}  // namespace berth::experiment
