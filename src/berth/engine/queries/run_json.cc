#include "berth/engine/queries/run_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/trials.h"
#include "berth/experiment/constraint.h"
#include "berth/flow/flow.h"
#include "berth/run/state/run_labels.h"
#include "berth/run/state/skips.h"

namespace berth::engine {
namespace {

Json time_json(const std::optional<Wall>& time) {
  return time ? Json(format_utc(*time)) : Json(nullptr);
}

Json labels_json(const ShownRun& run) {
  Json labels = Json::object();
  for (const auto& [name, value] : run.labels ? *run.labels : run::labels_of(run.record))
    labels[name] = value;
  return labels;
}

/// What was asked for; to read it from what was submitted takes time.
Json invocation_json(const store::RunRecord& record) {
  const auto asked = run::invocation_of(record);
  Json parameters = Json::object();
  for (const auto& [name, values] : asked.parameters)
    parameters[name] = values.size() == 1 ? Json(values.front()) : Json(values);
  return Json{{"program", asked.program},
              {"arguments", asked.arguments},
              {"parameters", std::move(parameters)}};
}

Json run_object(const ShownRun& run) {
  const store::Counts& counts = run.record.counts;
  return Json{{"id", run.record.name},
              {"name", run.record.name.substr(0, run.record.name.find_last_of('-'))},
              {"kind", run.record.kind},
              {"state", run.state},
              {"created", format_utc(run.record.created)},
              {"started", time_json(run.record.started)},
              {"ended", time_json(run.record.ended)},
              {"priority", run.record.priority},
              {"directory", run.record.directory},
              {"labels", labels_json(run)},
              {"error", run.record.error},
              {"runner", run.record.runner_pid},
              {"runner_host", run.record.runner_host},
              {"phase", store::name(run.record.phase)},
              {"tries", run.record.tries},
              {"last_try", time_json(run.record.last_try)},
              {"alloc", parsed_or_null(run.record.alloc)},
              {"result", parsed_or_null(run.record.result)},
              {"counts", Json{{"waiting", counts.waiting},
                              {"running", counts.running},
                              {"done", counts.done},
                              {"cached", counts.cached},
                              {"skipped", counts.skipped},
                              {"failed", counts.failed},
                              {"stopped", counts.stopped}}}};
}

Json devices_json(const std::string& uuids) {
  return uuids.empty() ? Json::array() : parsed_or_null(uuids);
}

/// Of a flow's task they stand in the record of what it depends on.
store::Values params_of(const store::TaskRecord& task) {
  if (!task.params.empty() || run::depended_on(task).empty()) return task.params;
  auto recorded = flow::read_record(task.depends);
  if (!recorded) return {};
  for (auto& [_, value] : recorded->params) value = without_secrets(value);
  return std::move(recorded->params);
}

Json failure_object(const Failure& failure, const experiment::ValueTypes& types) {
  const auto& report = failure.report;
  return Json{{"id", failure.id},
              {"cause", failure.cause},
              {"attempts", failure.attempts},
              {"params", parsed_or_null(experiment::values_json(report.params, types))},
              {"command", report.command},
              {"directory", report.directory},
              {"last_lines", report.last_lines},
              {"log", "berth logs " + failure.id}};
}

/// The bounds that a trial is known to break; one that was stopped before it told does not count.
std::vector<std::string> broken_bounds(const experiment::Program& program,
                                       const store::TaskRecord& task) {
  std::vector<std::string> texts;
  if (task.state != store::TaskState::done) return texts;
  for (const auto& bound : program.constraints)
    if (experiment::excess(bound, task.metrics).value_or(0) > 0)
      texts.push_back(experiment::constraint_text(bound));
  return texts;
}

/// `program`: of the run.
Json task_object(const store::RunRecord& run, const store::TaskRecord& task,
                 const experiment::Program& program) {
  Json metrics = Json::object();
  for (const auto& [name, value] : task.metrics) metrics[name] = value;
  return Json{{"id", run.name + "/" + task.label},
              {"state", store::name(task.state)},
              {"attempts", task.attempts},
              {"exit_code", task.exit_code ? Json(*task.exit_code) : Json(nullptr)},
              {"cause", cause_text(task)},
              {"cached", task.state == store::TaskState::cached},
              {"params", parsed_or_null(experiment::values_json(params_of(task), program.types))},
              {"metrics", metrics},
              {"broken", broken_bounds(program, task)},
              {"started", time_json(task.started)},
              {"ended", time_json(task.ended)},
              {"resources", parsed_or_null(task.resources)},
              {"devices", devices_json(task.devices)},
              {"host", task.host}};
}

Json goals_json(const experiment::Program& program) {
  Json list = Json::array();
  const auto add = [&](const experiment::Goal& goal) {
    list.push_back(Json{{"metric", goal.metric}, {"direction", goal.maximize ? "max" : "min"}});
  };
  if (program.goal) add(*program.goal);
  for (const auto& goal : program.further_goals) add(goal);
  return list;
}

/// What the parameters may be.
Json space_json(const experiment::Program& program) {
  Json space = Json::object();
  for (const auto& parameter : program.params)
    space[parameter.name] =
        parameter.choices.empty()
            ? Json{{"min", parameter.min},
                   {"max", parameter.max},
                   {"scale", experiment::Parameter::kScaleNames.name(parameter.scale)}}
            : Json{{"choices", parameter.choices}};
  return space;
}

Json front_json(const store::RunRecord& run, const Order& tasks) {
  Json list = Json::array();
  if (const auto program = program_of(run))
    for (const auto* task : front_of(tasks, *program)) list.push_back(run.name + "/" + task->label);
  return list;
}

Json attempt_object(const store::AttemptRecord& attempt) {
  return Json{{"number", attempt.number},
              {"token", attempt.token.value},
              {"started", format_utc(attempt.started)},
              {"ended", time_json(attempt.ended)},
              {"exit_code", attempt.exit_code ? Json(*attempt.exit_code) : Json(nullptr)},
              {"cause", cause_text(attempt)},
              {"detail", attempt.detail},
              {"resources", parsed_or_null(attempt.resources)},
              {"devices", devices_json(attempt.devices)},
              {"cpu_ms", attempt.cpu_ms},
              {"peak_mem", attempt.peak_mem},
              {"host", attempt.host}};
}

}  // namespace

std::string runs_json(const std::vector<ShownRun>& runs) {
  Json list = Json::array();
  for (const auto& run : runs) list.push_back(run_object(run));
  return dump(Json{{"version", 1}, {"runs", list}}) + "\n";
}

Resources resources_of_json(std::string_view text) {
  Resources resources;
  const Json amounts = parsed_or_null(std::string(text));
  if (!amounts.is_object()) return resources;
  for (const auto& [name, amount] : amounts.items())
    if (amount.is_number())
      resources.set(
          name, std::llround(amount.get<double>() * (measure(name) == Measure::milli ? 1000 : 1)));
  return resources;
}

std::vector<std::pair<std::string, double>> resource_minutes(
    const std::vector<store::Usage>& used) {
  std::map<std::string, double> sums;
  for (const auto& [resources, held] : used) {
    const Json amounts = parsed_or_null(resources);
    const double minutes = std::chrono::duration<double, std::ratio<60>>(held).count();
    for (const auto& [name, amount] : amounts.items())
      if (amount.is_number()) sums[name] += amount.get<double>() * minutes;
  }
  return {sums.begin(), sums.end()};
}

std::string show_json(const ShownRun& run, const std::vector<const store::TaskRecord*>& tasks,
                      const std::vector<const store::TaskRecord*>* all) {
  const auto program = shown_program(run.record);
  Json list = Json::array();
  Json bounds = Json::array();
  for (const auto& each : program.constraints) bounds.push_back(experiment::constraint_text(each));
  for (const auto* task : tasks) list.push_back(task_object(run.record, *task, program));
  Json failures = Json::array();
  for (const auto& failure : run.failures)
    failures.push_back(failure_object(failure, program.types));
  const auto minutes = resource_minutes(run.used);
  return dump(Json{
             {"version", 1},
             {"run", run_object(run)},
             {"invocation", invocation_json(run.record)},
             {"resource_minutes", std::map<std::string, double>(minutes.begin(), minutes.end())},
             {"goals", goals_json(program)},
             {"constraints", bounds},
             {"space", space_json(program)},
             {"front", front_json(run.record, all != nullptr ? *all : tasks)},
             {"tasks", list},
             {"failures", failures}}) +
         "\n";
}

std::string show_json(const ShownRun& run, const std::vector<store::TaskRecord>& tasks) {
  std::vector<const store::TaskRecord*> order;
  for (const auto& task : tasks) order.push_back(&task);
  return show_json(run, order);
}

std::string compare_json(const Comparison& comparison) {
  const auto seconds = [](const std::optional<Duration>& time) {
    return time ? Json(std::chrono::duration<double>(*time).count()) : Json(nullptr);
  };
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json runs = Json::array();
  for (const auto& each : comparison.runs) {
    Json run = run_object(each.run);
    run["scored"] = each.scored;
    run["best"] = each.best
                      ? task_object(each.run.record, *each.best, shown_program(each.run.record))
                      : Json(nullptr);
    run["best_score"] = number(each.score);
    run["median_score"] = number(each.median);
    run["median_trial_seconds"] = seconds(each.trial);
    run["seconds"] = seconds(each.took);
    runs.push_back(run);
  }
  const auto types = comparison.runs.empty() ? experiment::ValueTypes{}
                                             : shown_program(comparison.runs[0].run.record).types;
  Json shared = Json::array();
  for (const auto& each : comparison.shared) {
    Json scores = Json::object();
    for (std::size_t i = 0; i < each.scores.size(); ++i)
      scores[comparison.runs[i].run.record.name] = each.scores[i];
    shared.push_back(Json{{"params", parsed_or_null(experiment::values_json(each.params, types))},
                          {"scores", scores}});
  }
  return dump(Json{{"version", 1},
                   {"metric", comparison.metric},
                   {"direction", comparison.maximize ? "max" : "min"},
                   {"runs", runs},
                   {"shared", shared}}) +
         "\n";
}

std::string task_json(const store::RunRecord& run, const store::TaskRecord& task,
                      const experiment::Program& program) {
  Json object = task_object(run, task, program);
  object["version"] = 1;
  return dump(object) + "\n";
}

std::string why_run_json(const RunExplanation& run) {
  Json waiting = Json::array(), failed = Json::array();
  for (const auto& group : run.waiting)
    waiting.push_back({{"reason", group.reason}, {"count", group.count}, {"tasks", group.tasks}});
  for (const auto& group : run.failed)
    failed.push_back({{"cause", group.reason},
                      {"detail", group.detail},
                      {"count", group.count},
                      {"tasks", group.tasks}});
  return dump(Json{{"version", 1},
                   {"run", run_object({run.record, run.state})},
                   {"why", run.why},
                   {"waiting", std::move(waiting)},
                   {"failed", std::move(failed)},
                   {"exit_code", run.exit_code ? Json(*run.exit_code) : Json(nullptr)}}) +
         "\n";
}

std::string why_json(const store::RunRecord& run, const store::TaskRecord& task,
                     const std::vector<store::AttemptRecord>& attempts, const std::string& why,
                     const std::vector<std::string>& because, const run::TaskReport& report) {
  Json object = task_object(run, task, shown_program(run));
  object["version"] = 1;
  object["why"] = why;
  object["because"] = because;
  object["command"] = report.command;
  object["directory"] = report.directory;
  object["last_lines"] = report.last_lines;
  object["attempts_made"] = Json::array();
  for (const auto& attempt : attempts) object["attempts_made"].push_back(attempt_object(attempt));
  return dump(object) + "\n";
}

}  // namespace berth::engine
