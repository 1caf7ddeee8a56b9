#include <algorithm>
#include <map>
#include <set>

#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/experiment/document/format.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/proposers/halving.h"
#include "berth/experiment/proposers/population.h"

namespace berth::experiment {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::minutes(10);
constexpr double kMostParts = 10'000;  // of a trial's budget

Status add_points(const Field& list, Program& program) {
  BERTH_ASSIGN(const auto items, list.items());
  if (items.empty()) return list.error("the list of points is empty");
  for (const auto& item : items) {
    BERTH_ASSIGN(Values point, read_point(item, program.types));
    program.search.points.push_back(std::move(point));
  }
  if (program.types.texts.empty() && program.types.json.empty()) return {};
  for (const auto& item : items) {
    BERTH_ASSIGN(const auto entries, item.entries());
    for (const auto& [name, value] : entries) BERTH_TRY(check_type(name, value, program.types));
  }
  return {};
}

/// What some point names and another does not.
std::vector<std::string> not_in_all(const std::vector<Values>& points) {
  std::map<std::string, std::size_t> named;
  for (const auto& point : points)
    for (const auto& [name, value] : point) ++named[name];
  std::vector<std::string> names;
  for (const auto& [name, times] : named)
    if (times < points.size()) names.push_back(name);
  return names;
}

Status check_points(const Field& at, Program& program) {
  std::size_t values = 0;
  for (const auto& point : program.search.points) values += point.size();
  if (program.search.points.size() > kMostTrials || values > kMostValues)
    return at.error(fmt::format("more than {} trials, or {} values", kMostTrials, kMostValues));
  program.optional = not_in_all(program.search.points);
  return {};
}

Status read_sequence(const Field& search, const Field& root, Program& program) {
  const auto points = search.find("points");
  const auto file = search.find("file");
  if (points.has_value() == file.has_value())
    return search.error("a sequence requires either points: [{lr: 0.1}, …] or file: NAME");
  if (const auto params = root.find("params"))
    return params->error("the points of a sequence name their parameters themselves");
  if (points) {
    BERTH_TRY(add_points(*points, program));
    return check_points(*points, program);
  }
  BERTH_ASSIGN(program.search.file, exec::process_text(*file));
  return {};
}

/// What is said of any budget. `least` is the key of what a trial gets first.
Result<Budget> read_budget(const Field& field, std::string_view least, const Program& program) {
  BERTH_TRY(field.expect_keys(kBudgetFormat));
  Budget budget;
  BERTH_ASSIGN(const Field param, field.get("param"));
  BERTH_ASSIGN(budget.parameter, param.text());
  if (!valid_parameter_name(budget.parameter)) return param.error("not the name of a parameter");
  for (const auto& parameter : program.params)
    if (lower(parameter.name) == lower(budget.parameter))
      return param.error("the budget is a separate parameter: leave it out of params");
  BERTH_ASSIGN(const Field min, field.get(least));
  BERTH_ASSIGN(const Field max, field.get("max"));
  BERTH_ASSIGN(budget.min, min.number());
  BERTH_ASSIGN(budget.max, max.number());
  if (budget.min <= 0) return min.error("expected more than 0");
  if (budget.max < budget.min) return max.error(fmt::format("max is below {}", least));
  return budget;
}

Status read_halving(const Field& search, Program& program) {
  BERTH_ASSIGN(const std::size_t model, choice_or(search, "model", kModels));
  program.search.model = model == 0;
  BERTH_ASSIGN(const Field field, search.get("budget"));
  if (const auto every = field.find("every")) return every->error("belongs to method pbt");
  BERTH_ASSIGN(Budget budget, read_budget(field, "min", program));
  if (const auto reduction = field.find("reduction")) {
    BERTH_ASSIGN(budget.reduction, exec::integer_within(*reduction, 2, 1000));
  }
  if (!whole(budget)) program.types.floats.insert(budget.parameter);
  program.search.budget = budget;
  if (program.search.method == Search::Method::hyperband && program.search.samples == 0)
    program.search.samples = hyperband_round(budget);
  return {};
}

/// The parameters that a copy changes.
Status read_explore(const Field& search, Program& program) {
  auto& explore = program.search.explore;
  const auto field = search.find("explore");
  if (!field) {
    explore = explored_by_default(program.params);
    if (explore.empty())
      return search.error(
          "pbt moves ranges of floats, and params has no such range: give explore: [NAME, …]");
    return {};
  }
  BERTH_ASSIGN(explore, exec::read_names(*field));
  for (const auto& name : explore)
    if (std::ranges::find(program.params, name, &Parameter::name) == program.params.end())
      return field->error(fmt::format("params have no '{}'", clip(name)));
  return {};
}

Status read_population(const Field& search, const Field& root, Program& program) {
  if (const auto model = search.find("model"))
    return model->error("belongs to methods halving and hyperband");
  BERTH_ASSIGN(const Field field, search.get("budget"));
  for (const auto* key : {"min", "reduction"})
    if (const auto other = field.find(key))
      return other->error("belongs to methods halving and hyperband; pbt takes every and max");
  BERTH_ASSIGN(Budget budget, read_budget(field, "every", program));
  budget.every = budget.min;
  if (budget.max / budget.every > kMostParts ||
      budget.max / budget.every * static_cast<double>(program.search.samples) > kMostTrials)
    return field.error(fmt::format("expected at most {} parts of the budget, and {} trials in all",
                                   kMostParts, kMostTrials));
  if (!whole(budget)) program.types.floats.insert(budget.parameter);
  program.search.budget = budget;
  for (const auto& parameter : program.params)
    if (lower(parameter.name) == kParent)
      return root.find("params")->error(
          "pbt uses the name 'parent' for the trial that another one continues");
  program.optional.emplace_back(kParent);
  return read_explore(search, program);
}

Status read_external(const Field& search, Program& program) {
  BERTH_ASSIGN(const Field run, search.get("run"));
  BERTH_ASSIGN(program.search.proposer, exec::read_command(run));
  program.search.answer_timeout = kAnswerTimeout;
  if (const auto patience = search.find("patience")) {
    BERTH_ASSIGN(program.search.answer_timeout, exec::duration_of(*patience));
  }
  return {};
}

/// So many trials of no method: the one that suits them.
Status read_method(const Field& search, Search::Method& method) {
  const auto field = search.find("method");
  if (!field) {
    if (search.find("samples")) method = Search::Method::automatic;
    return {};
  }
  if (const auto name = field->text(); name && (*name == "cmaes" || *name == "cma_es")) {
    method = Search::Method::cma_es;
    return {};
  }
  BERTH_ASSIGN(method, field->choice(Search::kMethodNames));
  return {};
}

Status read_samples(const Field& search, Program& program) {
  const auto samples = search.find("samples");
  const auto method = program.search.method;
  const bool counted = method == Search::Method::grid || method == Search::Method::sequence;
  if (samples) {
    BERTH_ASSIGN(program.search.samples, exec::integer_within(*samples, 1, kMostTrials));
  }
  if (!counted && !samples && method != Search::Method::hyperband)
    return search.error("'samples' is missing: give the number of trials");
  if (counted && samples)
    return samples->error(fmt::format("a {} takes every point; samples belong to method random",
                                      Search::kMethodNames.name(method)));
  return {};
}

}  // namespace

Result<Values> read_point(const Field& field, ValueTypes& types) {
  Values point;
  std::set<std::string> variables;
  BERTH_ASSIGN(const auto entries, field.entries());
  for (const auto& [name, value] : entries) {
    if (!valid_parameter_name(name)) return value.error("not the name of a parameter");
    if (!variables.insert(lower(name)).second)
      return value.error("another one would share its BERTH_PARAM_ variable");
    BERTH_ASSIGN(std::string text, read_value(name, value, types));
    point.emplace_back(name, std::move(text));
  }
  return point;
}

Result<std::size_t> choice_or(const Field& map, std::string_view key,
                              std::span<const std::string_view> choices) {
  const auto field = map.find(key);
  return field ? field->choice(choices) : 0;
}

Status read_search(const Field& root, Program& program) {
  const bool has_range = std::ranges::any_of(program.params, [](const Parameter& parameter) {
    return parameter.choices.empty() && !parameter.integer && parameter.step == 0 &&
           parameter.points == 0;
  });
  const auto field = root.find("search");
  if (!field) {
    if (has_range)
      return root.find("params")->error(
          "a range is searched at random, or in n points; give search: {method: random, "
          "samples: 20}, or the range an n");
    return {};
  }
  BERTH_TRY(field->expect_keys(kSearchFormat));
  BERTH_TRY(read_method(*field, program.search.method));
  if (const auto seed = field->find("seed")) {
    BERTH_ASSIGN(const std::int64_t value, exec::integer_within(*seed, 0, INT64_MAX));
    program.search.seed = static_cast<std::uint64_t>(value);
  }
  BERTH_TRY(read_samples(*field, program));
  if (program.search.method == Search::Method::sequence)
    return read_sequence(*field, root, program);
  for (const auto* key : {"points", "file"})
    if (const auto other = field->find(key)) return other->error("belongs to method sequence");
  if (program.search.method == Search::Method::pbt) return read_population(*field, root, program);
  if (const auto other = field->find("explore")) return other->error("belongs to method pbt");
  if (has_budget(program.search.method)) return read_halving(*field, program);
  if (program.search.method == Search::Method::external) return read_external(*field, program);
  for (const auto* key : {"run", "patience"})
    if (const auto other = field->find(key)) return other->error("belongs to method external");
  if (const auto model = field->find("model"))
    return model->error("belongs to methods halving and hyperband");
  if (const auto budget = field->find("budget"))
    return budget->error("belongs to methods halving, hyperband and pbt");
  return {};
}

Status read_points(std::string_view text, const std::string& file, Program& program) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  std::string list(text);
  if (begin != std::string_view::npos && text[begin] == '{') {
    list.clear();
    for (const auto line : split(text, '\n'))
      list += fmt::format("{}{}\n", words(line).empty() ? "" : "- ", line);
  }
  BERTH_ASSIGN(const Field points, Field::parse(list, file));
  BERTH_TRY(add_points(points, program));
  return check_points(points, program);
}

}  // namespace berth::experiment
