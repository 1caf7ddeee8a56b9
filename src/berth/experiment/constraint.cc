#include "berth/experiment/constraint.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::experiment {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

Result<Constraint> read_constraint(std::string_view text) {
  const auto begin = std::min(text.find_first_of("<>"), text.size());
  const auto end = std::max(begin, std::min(text.find_first_not_of("<>=", begin), text.size()));
  const auto metric = trimmed(text.substr(0, begin));
  const auto relation = Constraint::kRelationNames.value(text.substr(begin, end - begin));
  const auto bound = parse_number(trimmed(text.substr(end)));
  if (metric.empty() || metric.ends_with('=') || !relation || !bound || !std::isfinite(*bound))
    return fail(ErrorKind::invalid,
                "expected METRIC <= NUMBER (or <, >=, >), such as latency <= 50, got '{}'",
                clip(text));
  return Constraint{std::string(metric), *relation, *bound};
}

std::string constraint_text(const Constraint& constraint) {
  return fmt::format("{} {} {}", constraint.metric,
                     Constraint::kRelationNames.name(constraint.relation),
                     format_number(constraint.bound));
}

std::optional<double> excess(const Constraint& constraint, const Numbers& metrics) {
  using enum Constraint::Relation;
  const auto found = std::ranges::find(metrics, constraint.metric, &Numbers::value_type::first);
  if (found == metrics.end()) return std::nullopt;
  const bool upper = constraint.relation == at_most || constraint.relation == below;
  const bool strict = constraint.relation == below || constraint.relation == above;
  const double beyond = upper ? found->second - constraint.bound : constraint.bound - found->second;
  if (beyond == 0) return strict ? std::numeric_limits<double>::min() : 0;
  return beyond / (constraint.bound == 0 ? 1 : std::abs(constraint.bound));
}

std::vector<std::string> broken(const std::vector<Constraint>& constraints,
                                const Numbers& metrics) {
  std::vector<std::string> texts;
  for (const auto& constraint : constraints)
    if (excess(constraint, metrics).value_or(1) > 0) texts.push_back(constraint_text(constraint));
  return texts;
}

double violation(const std::vector<Constraint>& constraints, const Numbers& metrics) {
  double sum = 0;
  for (const auto& constraint : constraints)
    sum += std::max(0.0, excess(constraint, metrics).value_or(HUGE_VAL));
  return sum;
}

bool is_better(const Goal& goal, const Scored& a, const Scored& b) {
  if (a.score != b.score) return goal.maximize ? a.score > b.score : a.score < b.score;
  return a.number < b.number;
}

std::optional<double> feasible_score(const Goal& goal, const std::vector<Constraint>& constraints,
                                     const Numbers& metrics) {
  return broken(constraints, metrics).empty() ? score(goal, metrics) : std::nullopt;
}

}  // namespace berth::experiment
