#include "berth/experiment/auptimizer/auptimizer_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/proposers/halving.h"

namespace berth::experiment {
namespace {

constexpr std::array<std::string_view, 3> kParameterTypes{"int", "float", "choice"};
/// The parameter in which hyperband and bohb tell a script how long to train.
constexpr const char* kBudget = "n_iterations";

/// In a sequence: the distance of two values. As in Auptimizer `interval` goes before `n`, and
/// without either it is 1.
Result<double> interval_of(const Field& field, const Parameter& parameter) {
  if (const auto interval = field.find("interval")) return interval->number();
  const auto count = field.find("n");
  if (!count) return 1;
  BERTH_ASSIGN(const auto points, exec::integer_within(*count, 2, kMostTrials));
  const double interval = (parameter.max - parameter.min) / static_cast<double>(points - 1);
  // Of integers there are no more than there are.
  return parameter.integer ? std::max(1.0, std::floor(interval)) : interval;
}

/// The values of a range in a sequence, as choices, since the steps need not end at max.
Status read_steps(const Field& field, Parameter& parameter) {
  BERTH_ASSIGN(const double interval, interval_of(field, parameter));
  const double steps =
      parameter.max > parameter.min ? (parameter.max - parameter.min) / interval : 0;
  if (!(steps >= 0) || !(steps < static_cast<double>(kMostTrials)))
    return field.error(fmt::format("expected an interval that makes at most {} steps, got {}",
                                   kMostTrials, interval));
  if (parameter.integer && interval != std::floor(interval))
    return field.error(
        fmt::format("expected a whole number as the interval of integers, got {}", interval));
  for (std::int64_t i = 0; i <= static_cast<std::int64_t>(steps + 1e-9); ++i)
    parameter.choices.push_back(
        fmt::format("{:.12g}", parameter.min + static_cast<double>(i) * interval));
  return {};
}

Result<Parameter> read_parameter(const Field& field, bool sequence, ValueTypes& types) {
  BERTH_ASSIGN(const Field name, field.get("name"));
  Parameter parameter{.name = {}, .choices = {}};
  BERTH_ASSIGN(parameter.name, name.text());
  if (!valid_parameter_name(parameter.name))
    return name.error("a parameter's name is made of letters, digits and _");
  if (const auto size = field.find("size"); size && size->text() != "1")
    return size->error("a parameter is one value: give each one a name");
  BERTH_ASSIGN(const std::size_t type, choice_or(field, "type", kParameterTypes));
  // As there, where nothing is told it is an integer from 0 to 1.
  BERTH_ASSIGN(const Field otherwise, Field::parse("[0, 1]", ""));
  const Field range = field.find("range").value_or(otherwise);
  BERTH_ASSIGN(const auto items, range.items());
  if (kParameterTypes[type] == "choice") {
    if (items.empty()) return range.error("the list of choices is empty");
    for (const auto& item : items) {
      BERTH_ASSIGN(parameter.choices.emplace_back(), read_value(parameter.name, item, types));
    }
    return parameter;
  }
  if (items.size() != 2) return range.error("expected [min, max]");
  BERTH_ASSIGN(parameter.min, items[0].number());
  BERTH_ASSIGN(parameter.max, items[1].number());
  if (parameter.min > parameter.max) return range.error("max is below min");
  parameter.integer = kParameterTypes[type] == "int";
  if (parameter.integer)
    for (const auto& item : items)
      if (const auto whole = item.integer(); !whole) return std::unexpected(whole.error());
  if (!parameter.integer) types.floats.insert(parameter.name);
  if (sequence) BERTH_TRY(read_steps(field, parameter));
  return parameter;
}

Status read_halving_budget(const Field& root, std::string_view proposer, Program& program) {
  Budget budget;
  budget.parameter = kBudget;
  budget.whole = false;
  BERTH_ASSIGN(budget.reduction, integer_or(root, "eta", 3, 2));
  std::int64_t brackets = 0;
  std::size_t skips = 0;
  if (proposer == "hyperband") {
    BERTH_ASSIGN(budget.max, number_or(root, "max_iter", 81));
    constexpr std::array<std::string_view, 4> kSkips{"0", "1", "false", "true"};
    BERTH_ASSIGN(skips, choice_or(root, "skip_last", kSkips));
  } else {
    BERTH_ASSIGN(budget.min, number_or(root, "min_budget", 0.01));
    BERTH_ASSIGN(budget.max, number_or(root, "max_budget", 1));
    budget.whole_groups = true;  // as HpBandSter, which runs these brackets there
    BERTH_ASSIGN(brackets, integer_or(root, "n_iterations", 4, 1));
  }
  if (!(budget.min > 0) || !std::isfinite(budget.max) || budget.max < budget.min)
    return root.error(fmt::format("a budget from {} to {} is not valid", budget.min, budget.max));
  if (brackets == 0) brackets = static_cast<std::int64_t>(levels(budget).size());
  // Without the last budget the last bracket, which knows no other, is gone.
  const bool skips_last = skips % 2 == 1;
  program.search.samples = hyperband_samples(budget, brackets - (skips_last ? 1 : 0));
  if (program.search.samples == 0)
    return root.find("skip_last")->error("there is only one budget, and it cannot be skipped");
  if (skips_last) budget.max /= static_cast<double>(budget.reduction);
  program.search.method = Search::Method::hyperband;
  program.search.model = proposer == "bohb";
  program.search.budget = budget;
  return {};
}

}  // namespace

Result<std::int64_t> integer_or(const Field& map, std::string_view key, std::int64_t otherwise,
                                std::int64_t least) {
  const auto field = map.find(key);
  return field ? exec::integer_within(*field, least, kMostTrials) : otherwise;
}

Result<double> number_or(const Field& map, std::string_view key, double otherwise) {
  const auto field = map.find(key);
  return field ? field->number() : otherwise;
}

Status read_parameters(const Field& root, AuptimizerExperiment& experiment) {
  Program& program = experiment.program;
  BERTH_ASSIGN(const Field config, root.get("parameter_config"));
  BERTH_ASSIGN(const auto items, config.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(
        Parameter parameter,
        read_parameter(item, program.search.method == Search::Method::grid, program.types));
    const std::string name = lower(parameter.name);
    for (const auto& earlier : program.params)
      if (lower(earlier.name) == name)
        return item.error(fmt::format("'{}' and '{}' would share one BERTH_PARAM_ variable",
                                      earlier.name, parameter.name));
    const bool budgets = program.search.budget && (name == kBudget || name == "tid");
    if (budgets || name == "job_id")
      return item.error(
          fmt::format("'{}' is passed to the script by Berth itself", parameter.name));
    program.params.push_back(std::move(parameter));
  }
  return {};
}

Status read_proposer(const Field& root, AuptimizerExperiment& experiment) {
  Program& program = experiment.program;
  Search& search = program.search;
  const auto field = root.find("proposer");
  std::string proposer = "random";
  if (field) {
    BERTH_ASSIGN(const std::string name, field->text());
    proposer = lower(name);
  }
  BERTH_ASSIGN(search.samples, integer_or(root, "n_samples", 10, 1));
  BERTH_ASSIGN(const std::int64_t seed, integer_or(root, "random_seed", 0, 0));
  search.seed = static_cast<std::uint64_t>(seed);
  search.method = Search::Method::random;
  if (proposer == "sequence") {
    search.method = Search::Method::grid;
    search.samples = 0;
  } else if (proposer == "hyperopt" || proposer == "spearmint") {
    search.method = Search::Method::tpe;
    experiment.notes.push_back(fmt::format("proposer {}: searched by method tpe", proposer));
  } else if (proposer == "hyperband" || proposer == "bohb") {
    BERTH_TRY(read_halving_budget(root, proposer, program));
    if (proposer == "bohb")
      experiment.notes.emplace_back(
          "proposer bohb: method hyperband, its points drawn as tpe does");
  } else if (proposer == "passive") {
    program.passive = true;
  } else if (proposer == "eas") {
    return field->error("eas trains networks with its own code and is not supported by Berth");
  } else if (proposer != "random") {
    return field->error(fmt::format(
        "expected random, sequence, hyperband, bohb, hyperopt, spearmint or passive, got '{}'",
        clip(proposer)));
  }
  return {};
}

}  // namespace berth::experiment
