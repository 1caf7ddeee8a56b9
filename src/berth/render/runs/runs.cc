#include "berth/render/runs/runs.h"

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/queries/run_json.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/trials.h"
#include "berth/render/runs/trials.h"

namespace berth::render {
namespace {

Table runs_table(const std::vector<engine::ShownRun>& runs, Wall now) {
  Table table({"run", "state", {"tasks", Column::kCut}, {"age", 1}, {"took", 2}});
  for (const auto& run : runs) {
    const auto& record = run.record;
    const bool timed = record.started && record.ended;
    table.add({record.name, run.state, engine::counts_text(record.counts),
               format_duration(now - record.created),
               timed ? format_duration(*record.ended - *record.started) : "-"});
  }
  return table;
}

/// "used 12.4 core-minutes, 3.1 GiB-minutes of mem"; "" before a task has ended.
std::string usage_line(const std::vector<store::Usage>& used) {
  std::vector<std::string> parts;
  for (const auto& [name, minutes] : engine::resource_minutes(used)) {
    const bool bytes = measure(name) == Measure::bytes;
    parts.push_back(name == "cpu" ? fmt::format("{:.3g} core-minutes", minutes)
                    : bytes ? fmt::format("{:.3g} GiB-minutes of {}", minutes / (1 << 30), name)
                            : fmt::format("{:.3g} {}-minutes", minutes, name));
  }
  return parts.empty() ? "" : "used " + join(parts, ", ");
}

/// The program, its arguments and the labels of the run.
std::string asked_line(const store::RunRecord& record) {
  const auto asked = engine::asked_of(record);
  std::string text = "program " + clip(asked.program, 200);
  for (const auto& argument : asked.arguments) text += " " + clip(shell_quote(argument), 200);
  if (const auto labels = exec::to_text(asked.labels); !labels.empty())
    text += "\nlabels " + labels;
  return text + "\n";
}

}  // namespace

std::string to_text(const RunList& list, const View& view) {
  return list.runs.empty() ? list.if_empty : to_text(runs_table(list.runs, list.now), view);
}

std::string to_json(const RunList& list) {
  return engine::runs_json(list.runs);
}

std::string to_text(const RunView& run, const View& view) {
  const auto& [shown, program, tasks] = run.run;
  const auto& record = shown.record;
  std::string text;
  if (run.lists_tasks) text += to_text(trials_table(run.shown, program, 0), view);
  if (const std::string chart = score_chart(tasks, program); !chart.empty())
    text += "\n" + chart + "\n";
  text += state_line(record, shown.state, view);
  text += engine::best_text(record, tasks, program);
  if (const std::string used = usage_line(shown.used); !used.empty()) text += used + "\n";
  text += asked_line(record);
  if (shown.state == "interrupted")
    text += fmt::format("{}resume it with: berth resume {}\n",
                        record.error.empty() ? "its runner died; " : "", record.name);
  return text;
}

std::string to_json(const RunView& run) {
  return engine::show_json(run.run.shown, run.shown, &run.all);
}

std::string to_text(const engine::BestTrial& best, const View& view) {
  std::string text = engine::best_line(best.record, best.task, best.program);
  if (!best.front.empty())
    text += "\nthe Pareto front (no trial is better in all goals):\n" +
            to_text(trials_table(engine::in_turn(best.front), best.program, 0), view);
  return text;
}

std::string to_json(const engine::BestTrial& best) {
  return engine::task_json(best.record, best.task, best.program);
}

std::string curves_json(const experiment::Program& program,
                        const std::vector<engine::Curve>& curves) {
  const experiment::Goal& goal = *program.goal;
  JsonWriter json;
  json.object().add("version", 1).add("metric", goal.metric);
  json.add("direction", goal.maximize ? "max" : "min").key("curves").array();
  for (const auto& curve : curves) {
    if (curve.values.empty()) continue;
    json.object().add("task", curve.label).add("stopped_early", curve.stopped_early);
    json.key("values").list(curve.values).end();
  }
  return json.end().end().take() + "\n";
}

std::string state_line(const store::RunRecord& run, std::string_view state, const View& view) {
  return fmt::format("{}  {}: {}\n", run.name,
                     view.has_colours ? state_in_colour(state) : std::string(state),
                     engine::counts_and_error(run));
}

}  // namespace berth::render
