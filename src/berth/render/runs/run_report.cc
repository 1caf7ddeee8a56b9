#include "berth/render/runs/run_report.h"

#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/engine/queries/failures.h"
#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/queries.h"
#include "berth/engine/queries/run_json.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/queries/trials.h"
#include "berth/error.h"
#include "berth/experiment/importance.h"
#include "berth/experiment/own_point.h"
#include "berth/experiment/proposers/population.h"
#include "berth/render/runs/failures.h"
#include "berth/render/runs/flow_graph.h"
#include "berth/render/runs/trials.h"

namespace berth::render {
namespace {

constexpr std::size_t kMostTrials = 20, kMostFailures = 20, kMostCurvesOfReport = 5;
constexpr std::size_t kMostLanes = 32, kMostTaskSpans = 3000;
constexpr std::uint64_t kImportanceSeed = 1;

struct ReportedRun {
  engine::Context& context;
  const store::RunRecord& record;
  std::vector<store::TaskRecord> tasks;
  experiment::Program program;  // an empty one for a flow
};

std::string took(const std::optional<Wall>& from, const std::optional<Wall>& to) {
  return from && to ? format_duration(*to - *from) : "-";
}

std::string number_or_dash(std::optional<double> value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

Section summary(const ReportedRun& run, os::Env& env) {
  const auto& record = run.record;
  const auto asked = engine::asked_of(record);
  std::string command = asked.program;
  for (const auto& argument : asked.arguments) command += " " + shell_quote(argument);
  Table facts({"", ""});
  const auto add = [&](std::string name, std::string value) {
    if (!value.empty()) facts.add({std::move(name), std::move(value)});
  };
  add("state", engine::state_now(env, record));
  add("reason", record.error);
  add("tasks", engine::counts_text(record.counts));
  add("created", format_utc(record.created));
  if (record.started) add("started", format_utc(*record.started));
  if (record.ended) add("ended", format_utc(*record.ended));
  if (record.started && record.ended) add("duration", took(record.started, record.ended));
  add("command", command);
  add("directory", record.directory);
  add("labels", exec::to_text(asked.labels));
  Section section{"Summary", {std::move(facts)}};
  return section;
}

Result<Section> resources(const ReportedRun& run) {
  Section section{"Resources", {}};
  BERTH_ASSIGN(const auto used, run.context.store->usage(run.record.id));
  Table table({"resource", "allocated, unit-minutes"});
  for (const auto& [name, minutes] : engine::resource_minutes(used)) {
    const bool bytes = measure(name) == Measure::bytes;
    table.add({bytes ? name + " (GiB)" : name,
               fmt::format("{:.4g}", bytes ? minutes / (1 << 30) : minutes)});
  }
  if (!table.rows.empty()) section.parts.emplace_back(std::move(table));
  return section;
}

Result<Section> failures(const ReportedRun& run) {
  Section section{"Failures", {}};
  BERTH_ASSIGN(const auto failed,
               engine::failures_of(run.context, run.record, run.tasks, kMostFailures));
  if (failed.empty()) return section;
  Table table({"task", "cause", "attempts"});
  for (const auto& each : failed)
    table.add({each.id, each.cause, fmt::format("{}", each.attempts)});
  section.parts.emplace_back(std::move(table));
  const auto all = static_cast<std::size_t>(run.record.counts.failed);
  if (all > failed.size())
    section.parts.emplace_back(Text{fmt::format("The first {} of {}.", failed.size(), all)});
  for (const auto& each : failed) {
    std::string text = "$ " + each.report.command;
    for (const auto& line : each.report.last_lines) text += "\n" + line;
    section.parts.emplace_back(Text{each.id + ": " + each.cause});
    section.parts.emplace_back(Verbatim{std::move(text)});
  }
  return section;
}

Result<Plot> learning_curves(const ReportedRun& run, const engine::Order& order) {
  std::vector<engine::Curve> curves;
  for (const auto* task : order) {
    if (curves.size() == kMostCurvesOfReport || !engine::score_of(*task, run.program)) break;
    BERTH_ASSIGN(const auto metrics, run.context.store->metrics(run.record.id, task->number));
    engine::Curve curve{.label = task->label, .values = {}};
    for (const auto& metric : metrics)
      if (metric.token == task->token && metric.name == run.program.goal->metric)
        curve.values.push_back(metric.value);
    if (curve.values.size() > 1) curves.push_back(std::move(curve));
  }
  return curves_plot(curves, run.program);
}

Table leading_trials(const engine::Order& order) {
  const auto params = engine::parameter_names(order), metrics = engine::metric_names(order);
  Table table({"trial"});
  table.columns.insert(table.columns.end(), params.begin(), params.end());
  table.columns.insert(table.columns.end(), metrics.begin(), metrics.end());
  table.columns.insert(table.columns.end(), {"duration", "state"});
  for (const auto* task : order) {
    if (table.rows.size() == kMostTrials) break;
    std::vector<std::string> row{task->label};
    for (const auto& name : params)
      row.push_back(clip(without_secrets(engine::value_of(*task, name)), 40));
    for (const auto& name : metrics) row.push_back(number_or_dash(engine::metric_of(*task, name)));
    row.push_back(took(task->started, task->ended));
    row.emplace_back(store::name(task->state));
    table.add(std::move(row));
  }
  return table;
}

/// Shares, as a chart and as a table; nothing where there are too few trials for them.
void add_importance(const ReportedRun& run, Section& section) {
  std::vector<experiment::ScoredTrial> trials;
  for (const auto& task : run.tasks) {
    const auto score = engine::score_of(task, run.program);
    if (!score || !std::isfinite(*score) || task.label == experiment::kBestAgain) continue;
    trials.push_back({task.params, *score});
    if (run.program.search.method == experiment::Search::Method::pbt)
      std::erase_if(trials.back().params,
                    [](const auto& value) { return value.first == experiment::kParent; });
  }
  const auto found = experiment::importances(trials, kImportanceSeed);
  if (!found) return;
  Bars bars{.title = fmt::format("Each parameter's share of variance of {} (fANOVA)",
                                 run.program.goal->metric)};
  Table table({"parameter", "share of variance"});
  for (const auto& each : found->parameters) {
    const std::string share = fmt::format("{:.0f} %", each.share * 100);
    bars.bars.push_back({each.parameter, each.share, share});
    table.add({each.parameter, share});
  }
  section.parts.emplace_back(std::move(bars));
  section.parts.emplace_back(std::move(table));
  section.parts.emplace_back(Text{
      fmt::format("From {} trials. The model predicts {:.0f} % of the variance of trials that it "
                  "was not fitted to; if this is low, do not trust the shares.",
                  found->trials, std::max(0.0, found->predicted) * 100)});
}

Result<std::vector<Section>> search_sections(const ReportedRun& run) {
  if (run.record.kind == "flow" || run.tasks.size() < 2) return {};
  const engine::Order order = engine::sorted_trials(run.tasks, run.program);
  Section result{run.program.goal ? "Result" : "Tasks", {}};
  if (run.program.goal) {
    const std::string best = engine::best_text(run.record, run.tasks, run.program);
    result.parts.emplace_back(Text{best.empty() ? "No trial has a score." : best});
    const engine::Order front = engine::front_of(order, run.program);
    if (!front.empty())
      result.parts.emplace_back(Text{
          fmt::format("{} trials are on the Pareto front: no other trial is better in all goals.",
                      front.size())});
    result.parts.emplace_back(history_plot(run.tasks, run.program));
    BERTH_ASSIGN(auto curves, learning_curves(run, order));
    result.parts.emplace_back(std::move(curves));
  }
  result.parts.emplace_back(leading_trials(order));
  if (order.size() > kMostTrials)
    result.parts.emplace_back(Text{fmt::format("{} of {}; all: berth show {} --csv", kMostTrials,
                                               order.size(), run.record.name)});
  std::vector<Section> sections{std::move(result)};
  if (run.program.goal) {
    Section decides{"Parameter importance", {}};
    add_importance(run, decides);
    sections.push_back(std::move(decides));
  }
  if (!run.program.params.empty()) {
    Table space({"parameter", "values"});
    for (const auto& parameter : run.program.params)
      space.add({parameter.name, experiment::space_text(parameter)});
    sections.push_back({"Search space", {std::move(space)}});
  }
  return sections;
}

Result<std::vector<Section>> flow_sections(const ReportedRun& run) {
  if (run.record.kind != "flow") return {};
  BERTH_ASSIGN(const auto flow, engine::flow_of(run.record));
  const auto counts = engine::step_counts(flow, run.record, run.tasks);
  Table table({"step", "tasks", "done", "cached", "failed", "median", "longest", "total"});
  Bars bars{.title = "Total time of the tasks of each step"};
  std::vector<Duration> sums;
  for (const auto& step : counts) {
    std::vector<Duration> times;
    Duration sum{};
    for (const auto& task : run.tasks)
      if (engine::step_name(task.label) == step.name && task.started && task.ended) {
        times.push_back(*task.ended - *task.started);
        sum += times.back();
      }
    std::ranges::sort(times);
    const auto text = [&](std::size_t at) {
      return at < times.size() ? format_duration(times[at]) : std::string("-");
    };
    table.add({step.name, fmt::format("{}", step.counts.total()),
               fmt::format("{}", step.counts.done), fmt::format("{}", step.counts.cached),
               fmt::format("{}", step.counts.failed), text(times.size() / 2),
               text(times.size() - 1), times.empty() ? "-" : format_duration(sum)});
    bars.bars.push_back({step.name, 0, times.empty() ? "-" : format_duration(sum)});
    sums.push_back(sum);
  }
  const Duration most = sums.empty() ? Duration{} : std::ranges::max(sums);
  for (std::size_t i = 0; i < sums.size() && most > Duration{}; ++i)
    bars.bars[i].part = std::chrono::duration<double>(sums[i]) / most;
  return std::vector<Section>{{"Steps", {std::move(table), std::move(bars)}},
                              {"Graph", {Verbatim{graph_text(flow, counts)}}}};
}

/// Each task's last attempt, a flow's by their steps, others in as many rows as ran side by side.
Section timeline(const ReportedRun& run) {
  std::vector<const store::TaskRecord*> ran;
  for (const auto& task : run.tasks)
    if (task.started && task.ended) ran.push_back(&task);
  const std::size_t all = ran.size();
  const auto time = [](const auto* task) { return *task->started - *task->ended; };
  if (all > kMostTaskSpans) {
    std::ranges::nth_element(ran, ran.begin() + kMostTaskSpans, {}, time);
    ran.resize(kMostTaskSpans);
  }
  std::ranges::sort(ran, {}, [](const auto* task) { return *task->started; });
  Timeline chart{.title = "Timeline of the tasks", .rows = {}, .spans = {}};
  std::vector<Wall> ends;  // of each row
  const bool by_step = run.record.kind == "flow";
  for (const auto* task : ran) {
    std::size_t row = 0;
    if (by_step) {
      const std::string step(engine::step_name(task->label));
      row = static_cast<std::size_t>(std::ranges::find(chart.rows, step) - chart.rows.begin());
      if (row == chart.rows.size()) chart.rows.push_back(step);
    } else {
      while (row < ends.size() && row + 1 < kMostLanes && ends[row] > *task->started) ++row;
      if (row == ends.size()) ends.emplace_back();
      ends[row] = *task->ended;
      if (row == chart.rows.size()) chart.rows.push_back("");
    }
    const auto since = [&](Wall at) {
      return std::chrono::duration<double>(at - *ran.front()->started).count();
    };
    const bool failed = task->state == store::TaskState::failed;
    chart.spans.push_back({row, since(*task->started), since(*task->ended),
                           failed                                  ? Timeline::Kind::failed
                           : task->state == store::TaskState::done ? Timeline::Kind::done
                                                                   : Timeline::Kind::other,
                           fmt::format("{}: {}, {}", task->label, store::name(task->state),
                                       took(task->started, task->ended))});
  }
  Section section{"Timeline", {std::move(chart)}};
  if (all > kMostTaskSpans)
    section.parts.emplace_back(
        Text{fmt::format("The {} longest of {} tasks.", kMostTaskSpans, all)});
  return section;
}

}  // namespace

Result<Document> report_of_run(engine::Context& context, const store::RunRecord& record) {
  os::Env& env = *context.env;
  BERTH_ASSIGN(auto tasks, context.store->tasks(record.id));
  BERTH_ASSIGN(auto program, engine::program_of(record));
  const ReportedRun run{context, record, std::move(tasks), std::move(program)};
  Document page{.title = record.name,
                .subtitle = fmt::format("{}, {}: {}", record.kind, engine::state_now(env, record),
                                        engine::counts_text(record.counts)),
                .sections = {summary(run, env)},
                .footer = fmt::format("berth {}, {}. More: berth show {}", version(),
                                      format_utc(env.wall()), record.name)};
  const auto add = [&](std::vector<Section> sections) {
    for (auto& section : sections)
      if (!section.parts.empty()) page.sections.push_back(std::move(section));
  };
  BERTH_ASSIGN(auto of_search, search_sections(run));
  add(std::move(of_search));
  BERTH_ASSIGN(auto of_flow, flow_sections(run));
  add(std::move(of_flow));
  BERTH_ASSIGN(auto failed, failures(run));
  add({std::move(failed)});
  add({timeline(run)});
  BERTH_ASSIGN(auto held, resources(run));
  add({std::move(held)});
  return page;
}

}  // namespace berth::render
