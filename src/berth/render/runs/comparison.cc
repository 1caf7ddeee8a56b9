#include "berth/render/runs/comparison.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/engine/queries/run_json.h"
#include "berth/engine/queries/trials.h"

namespace berth::render {
namespace {

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

std::string time_text(const std::optional<Duration>& time) {
  return time ? format_duration(*time) : "-";
}

std::string runs_text(const engine::Comparison& comparison, const View& view) {
  Table table({"run",
               "state",
               {"done", 2},
               {"failed", 3},
               "best " + comparison.metric,
               {"trial", 1},
               {"median", 4},
               {"trial time", 6},
               {"took", 5}});
  for (const auto& each : comparison.runs) {
    const auto& record = each.run.record;
    table.add({record.name, each.run.state, fmt::format("{}", record.counts.done),
               fmt::format("{}", record.counts.failed), number_text(each.score),
               each.best ? each.best->label : "-", number_text(each.median), time_text(each.trial),
               time_text(each.took)});
  }
  return to_text(table, view);
}

/// The parameters of the best trials: a row each, a column a run.
std::string best_trials_text(const engine::Comparison& comparison, const View& view) {
  engine::Order best;
  for (const auto& each : comparison.runs)
    if (each.best) best.push_back(&*each.best);
  const auto names = engine::parameter_names(best);
  if (names.empty()) return "";
  std::vector<Column> head{"best trial's"};
  for (const auto& each : comparison.runs) head.push_back(each.run.record.name);
  Table table(head);
  for (const auto& name : names) {
    std::vector<std::string> row{name};
    for (const auto& each : comparison.runs)
      row.push_back(each.best ? clip(without_secrets(engine::value_of(*each.best, name)), 32)
                              : "-");
    table.add(std::move(row));
  }
  return "\n" + to_text(table, view);
}

std::string shared_text(const engine::Comparison& comparison, const View& view) {
  if (comparison.shared.empty()) return "";
  std::vector<store::TaskRecord> settings;  // as trials, whose parameters may differ
  for (const auto& shared : comparison.shared) settings.emplace_back().params = shared.params;
  const auto names = engine::parameter_names(engine::in_turn(settings));
  std::vector<Column> head(names.begin(), names.end());
  for (const auto& each : comparison.runs) head.push_back(each.run.record.name);
  Table table(head);
  const std::size_t rows = std::min(kMostRows, comparison.shared.size());
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
      to_text(table, view));
}

}  // namespace

std::string to_text(const engine::Comparison& comparison, const View& view) {
  return runs_text(comparison, view) + best_trials_text(comparison, view) +
         shared_text(comparison, view);
}

std::string to_json(const engine::Comparison& comparison) {
  return engine::compare_json(comparison);
}

}  // namespace berth::render
