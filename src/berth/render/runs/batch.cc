#include "berth/render/runs/batch.h"

#include "berth/engine/queries/run_json.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"

namespace berth::render {

std::string to_text(const engine::BatchResult& batch, const View&) {
  using Run = engine::BatchResult::Run;
  static const std::vector<Field<Run>> kFields{
      {"row", [](const Run& each) { return each.row; }},
      {"run", [](const Run& each) { return each.run.record.name; }},
      {"state", [](const Run& each) { return each.run.state; }},
      {"tasks", [](const Run& each) { return engine::counts_text(each.run.record.counts); }}};
  return to_text(table_of(kFields, batch.runs));
}

std::string to_json(const engine::BatchResult& batch) {
  std::vector<engine::ShownRun> runs;
  for (const auto& each : batch.runs) runs.push_back(each.run);
  return engine::runs_json(runs);
}

std::string next_commands(const engine::BatchResult& batch) {
  std::string text;
  for (const auto& [row, run] : batch.runs)
    if (run.state == "failed")
      text += fmt::format("see: berth show {}\n", run.record.name);
    else if (!engine::is_under_way(run.state) && run.state != "done")
      text += fmt::format("resume it with: berth resume {}\n", run.record.name);
  return text;
}

}  // namespace berth::render
