// berth compare: the results of several runs next to each other, by one metric.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/run_json.h"
#include "berth/engine/trials.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

struct CompareOptions {
  bool json = false;
  std::vector<std::string> runs;
  std::string metric, direction;

  void add_to(Options& options) {
    options.json(json);
    add_runs(options, runs, "Two or more runs, such as digits-3 digits-4").count(2, 64);
    options.value("--metric", metric, "Compare this metric (default: the metric of the goal)")
        .named("NAME");
    options.value("--direction", direction, "Best is max or min (default: as in the goal)")
        .named("DIRECTION")
        .one_of({"max", "min"});
    options.example("berth compare digits-3 digits-4 --metric loss --direction min");
  }
};

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

std::string time_text(const std::optional<Duration>& time) {
  return time ? format_duration(*time) : "-";
}

std::string runs_side_by_side(const engine::Comparison& comparison) {
  render::Table table({"run", "state", "done", "failed", "best " + comparison.metric, "trial",
                       "median", "trial time", "took"});
  for (const auto& each : comparison.runs) {
    const auto& record = each.run.record;
    table.add({record.name, each.run.state, fmt::format("{}", record.counts.done),
               fmt::format("{}", record.counts.failed), number_text(each.score),
               each.best ? each.best->label : "-", number_text(each.median), time_text(each.trial),
               time_text(each.took)});
  }
  return render::to_text(table);
}

/// The parameters of the best trials: a row each, a column a run.
std::string best_side_by_side(const engine::Comparison& comparison) {
  engine::Order best;
  for (const auto& each : comparison.runs)
    if (each.best) best.push_back(&*each.best);
  const auto names = engine::parameter_names(best);
  if (names.empty()) return "";
  std::vector<render::Column> head{"best trial's"};
  for (const auto& each : comparison.runs) head.push_back(each.run.record.name);
  render::Table table(head);
  for (const auto& name : names) {
    std::vector<std::string> row{name};
    for (const auto& each : comparison.runs)
      row.push_back(each.best ? clip(without_secrets(engine::value_of(*each.best, name)), 32)
                              : "-");
    table.add(std::move(row));
  }
  return "\n" + render::to_text(table);
}

std::string shared_side_by_side(const engine::Comparison& comparison) {
  if (comparison.shared.empty()) return "";
  std::vector<store::TaskRecord> settings;  // as trials, whose parameters may differ
  for (const auto& shared : comparison.shared) settings.emplace_back().params = shared.params;
  const auto names = engine::parameter_names(engine::in_turn(settings));
  std::vector<render::Column> head(names.begin(), names.end());
  for (const auto& each : comparison.runs) head.push_back(each.run.record.name);
  render::Table table(head);
  const std::size_t rows = std::min(render::kMostRows, comparison.shared.size());
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<std::string> row;
    for (const auto& name : names)
      row.push_back(clip(without_secrets(engine::value_of(settings[i], name)), 32));
    for (const double score : comparison.shared[i].scores) row.push_back(number_text(score));
    table.add(std::move(row));
  }
  return fmt::format(
      "\n"
      "{} of the parameters in common ({}{}):\n"
      "{}",
      comparison.metric, comparison.shared.size(),
      rows < comparison.shared.size() ? fmt::format(", the best {}", rows) : "",
      render::to_text(table));
}

Result<int> compare(os::Env& env, const CompareOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  std::optional<bool> maximize;
  if (!options.direction.empty()) maximize = options.direction == "max";
  BERTH_ASSIGN(const auto comparison,
               engine::compare(context, options.runs, options.metric, maximize));
  if (options.json) {
    print(engine::compare_json(comparison));
    return 0;
  }
  print(runs_side_by_side(comparison) + best_side_by_side(comparison) +
        shared_side_by_side(comparison));
  return 0;
}

}  // namespace

Command compare_command() {
  return command("compare", "Compare the results of runs", compare);
}

}  // namespace berth::cli
