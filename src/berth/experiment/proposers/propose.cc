// The searches that know all their trials beforehand.
#include <algorithm>

#include "berth/experiment/proposers/sobol.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

/// The points of a grid, the last parameter turning fastest.
class Grid {
 public:
  explicit Grid(const std::vector<Parameter>& params) : params_(params), turns_(params.size()) {}

  Values point() const {
    Values values;
    for (std::size_t i = 0; i < params_.size(); ++i)
      if (present(params_[i], values))
        values.emplace_back(params_[i].name, grid_value(params_[i], turns_[i]));
    return values;
  }

  /// To the next point; false after the last.
  bool turn() {
    for (std::size_t i = params_.size(); i-- > 0;) {
      if (turns_[i] + 1 < grid_size(params_[i]) && here(i)) {
        ++turns_[i];
        return true;
      }
      turns_[i] = 0;
    }
    return false;
  }

 private:
  /// Whether the present point has this parameter.
  bool here(std::size_t parameter) const {
    if (params_[parameter].when.empty()) return true;
    return find_value(point(), params_[parameter].name) != nullptr;
  }

  const std::vector<Parameter>& params_;
  std::vector<std::int64_t> turns_;
};

Result<std::int64_t> grid_trials(const Program& program) {
  const bool conditional = std::ranges::any_of(
      program.params, [](const Parameter& parameter) { return !parameter.when.empty(); });
  std::int64_t total = 1;
  for (const auto& parameter : program.params) {
    const std::int64_t size = grid_size(parameter);
    if (size == 0)
      return fail(ErrorKind::invalid, "{}: a grid needs the number of points of a range, n: 5",
                  parameter.name);
    if (total <= kMostTrials) total = size > kMostTrials ? kMostTrials + 1 : total * size;
  }
  if (!conditional) return total;
  const auto width = static_cast<std::int64_t>(program.params.size());
  Grid grid(program.params);
  for (total = 1; grid.turn() && total <= kMostTrials; ++total)
    if (total > kMostValues / width) break;
  return total;
}

Values drawn(const Program& program, Rng& rng) {
  Values values;
  for (const auto& parameter : program.params)
    if (present(parameter, values)) values.emplace_back(parameter.name, draw(parameter, rng));
  return values;
}

Values sobol_point(const Program& program, std::int64_t trial) {
  Values values;
  for (std::size_t i = 0; i < program.params.size(); ++i) {
    const Parameter& parameter = program.params[i];
    if (!present(parameter, values)) continue;
    const double part = sobol(static_cast<std::uint64_t>(trial), i, program.search.seed);
    values.emplace_back(parameter.name, value_at(parameter, part));
  }
  return values;
}

}  // namespace

Result<std::int64_t> count_trials(const Program& program) {
  const bool grid = program.search.method == Search::Method::grid;
  std::int64_t total = program.search.samples;
  if (grid) {
    BERTH_ASSIGN(total, grid_trials(program));
  } else if (program.search.method == Search::Method::sequence) {
    total = static_cast<std::int64_t>(program.search.points.size());
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
  if (program.search.method == Search::Method::sequence) return program.search.points;
  BERTH_ASSIGN(const std::int64_t total, count_trials(program));
  if (adaptive(program.search)) return std::vector<Values>();
  Rng rng(program.search.seed);
  Grid grid(program.params);
  std::vector<Values> trials(static_cast<std::size_t>(total));
  for (std::int64_t trial = 0; trial < total; ++trial) {
    Values& values = trials[static_cast<std::size_t>(trial)];
    switch (program.search.method) {
      case Search::Method::grid:
        values = grid.point();
        grid.turn();
        break;
      case Search::Method::sobol: values = sobol_point(program, trial); break;
      default: values = drawn(program, rng);
    }
  }
  return trials;
}

}  // namespace berth::experiment
