#include <algorithm>

#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/document/format.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/proposers/proposer.h"

namespace berth::experiment {
namespace {

Result<Goal> read_goal(const Field& field, Program& program) {
  if (auto keys = field.expect_keys(kGoalFormat); !keys) {
    if (field.is_scalar())
      keys.error().message += fmt::format(
          "; to minimize it: {{metric: {0}, direction: min}}; to maximize it: direction: max",
          clip(field.node().text));
    return std::unexpected(std::move(keys).error());
  }
  Goal goal;
  BERTH_ASSIGN(const Field metric, field.get("metric"));
  BERTH_ASSIGN(goal.metric, metric.text());
  BERTH_ASSIGN(const std::size_t direction, choice_or(field, "direction", kDirections));
  goal.maximize = direction % 2 == 0;
  if (!field.find("direction"))
    program.notes.push_back(fmt::format(
        "goal: the highest {0} is best; to minimize it: {{metric: {0}, direction: min}}",
        goal.metric));
  BERTH_TRY(read_choice(field, "score", Goal::kScoreNames, goal.score));
  return goal;
}

/// One goal, or a list of them.
Status read_all(const Field& field, Program& program) {
  if (!field.is_list()) {
    BERTH_ASSIGN(program.goal, read_goal(field, program));
    return {};
  }
  BERTH_ASSIGN(const auto items, field.items());
  if (items.empty() || items.size() > kMostGoals)
    return field.error(fmt::format("expected 1 to {} goals", kMostGoals));
  BERTH_ASSIGN(program.goal, read_goal(items.front(), program));
  for (std::size_t i = 1; i < items.size(); ++i) {
    BERTH_ASSIGN(Goal goal, read_goal(items[i], program));
    program.further_goals.push_back(std::move(goal));
  }
  if (program.goal->score == Goal::Score::best ||
      std::ranges::any_of(program.further_goals,
                          [](const Goal& goal) { return goal.score == Goal::Score::best; }))
    return field.error("with several goals, the last values are used: leave out score");
  return {};
}

/// All faults of the list at once.
void read_constraints(const Field& list, Program& program, Faults& faults) {
  std::vector<Field> items;
  if (!faults.take(items, list.items())) return;
  if (items.empty() || items.size() > kMostConstraints)
    faults.add(list.error(fmt::format("expected 1 to {} constraints", kMostConstraints)));
  for (const auto& item : items) {
    std::string text;
    if (!faults.take(text, item.text())) continue;
    auto constraint = read_constraint(text);
    if (constraint)
      program.constraints.push_back(*std::move(constraint));
    else
      faults.add(item.error(constraint.error()));
  }
}

/// Above 0 and below 1: "0.2".
Status read_part(const Field& map, std::string_view key, double& part) {
  const auto field = map.find(key);
  if (!field) return {};
  BERTH_ASSIGN(part, field->number());
  if (part <= 0 || part >= 1) return field->error("expected a part, above 0 and below 1");
  return {};
}

Result<EarlyStop> read_early_stop(const Field& field) {
  EarlyStop stop;
  BERTH_TRY(field.get("policy"));
  BERTH_TRY(read_choice(field, "policy", EarlyStop::kPolicyNames, stop.policy));
  BERTH_TRY(field.expect_keys(kEarlyStopFormats[static_cast<std::size_t>(stop.policy)]));
  if (const auto warmup = field.find("warmup")) {
    BERTH_ASSIGN(stop.warmup, exec::integer_within(*warmup, 0, kMostTrials));
  }
  if (const auto every = field.find("every")) {
    BERTH_ASSIGN(stop.every, exec::integer_within(*every, 1, kMostTrials));
  }
  if (const auto slack = field.find("slack")) {
    BERTH_ASSIGN(stop.slack, slack->number());
    if (stop.slack < 0) return slack->error("expected 0 or more");
  }
  if (const auto steps = field.find("steps")) {
    BERTH_ASSIGN(stop.steps, exec::integer_within(*steps, 1, kMostTrials));
  }
  BERTH_TRY(read_part(field, "part", stop.part));
  BERTH_TRY(read_part(field, "probability", stop.probability));
  return stop;
}

}  // namespace

Status read_goals(const Field& root, Program& program) {
  Faults faults;
  const auto goal = root.find("goal");
  if (goal) faults.add(read_all(*goal, program));
  const auto constraints = root.find("constraints");
  if (constraints) read_constraints(*constraints, program, faults);
  if (constraints && !goal)
    faults.add(
        constraints->error("constraints require a goal; add goal: {metric: NAME, direction: max}"));
  const auto stop = root.find("early_stop");
  if (stop) faults.take(program.early_stop, read_early_stop(*stop));
  if (stop && !goal) faults.add(stop->error("a goal is needed to find the trials that do badly"));
  if (stop && program.search.budget)
    faults.add(stop->error("trials that receive their budget gradually need no early stop"));
  if (program.search.method == Search::Method::cma_es && goal && goal->is_list())
    faults.add(root.find("search")->error("cma-es takes one goal; tpe, gp and nsga2 take several"));
  return faults.status();
}

}  // namespace berth::experiment
