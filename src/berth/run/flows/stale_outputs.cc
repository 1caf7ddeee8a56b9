#include "berth/run/flows/stale_outputs.h"

#include <algorithm>
#include <set>

#include "berth/flow/flow.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/state/skips.h"

namespace berth::run {
namespace {

std::string_view base_name(std::string_view run) {
  return run.substr(0, run.rfind('-'));
}

/// Of tasks that are not the same in the other run: those write the same in both.
Result<std::set<std::string>> outputs_of(const std::vector<store::TaskRecord>& tasks,
                                         const std::vector<store::TaskRecord>& other) {
  std::set<std::string> paths;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& task = tasks[i];
    const bool same = i < other.size() && task.depends == other[i].depends;
    if (same || depended_on(task).empty()) continue;
    BERTH_ASSIGN(const auto recorded, flow::read_record(task.depends));
    paths.insert(recorded.outputs.begin(), recorded.outputs.end());
  }
  return paths;
}

}  // namespace

Result<StaleOutputs> stale_outputs(Context& context, const store::RunRecord& run,
                                   const std::vector<store::TaskRecord>& tasks) {
  StaleOutputs stale;
  if (run.kind != "flow" || run.state != store::RunState::done) return stale;
  // One that was to run a part writes a part.
  if (const auto program = flow_program(run.spec_json);
      !program || !program->options.targets.empty())
    return stale;
  BERTH_ASSIGN(const auto runs, context.store->runs());
  const store::RunRecord* earlier = nullptr;
  for (const auto& other : runs)
    if (other.id < run.id && other.kind == run.kind && other.directory == run.directory &&
        other.state == store::RunState::done && base_name(other.name) == base_name(run.name) &&
        (earlier == nullptr || earlier->id < other.id))
      earlier = &other;
  if (earlier == nullptr) return stale;
  stale.run = earlier->name;
  BERTH_ASSIGN(const auto written, context.store->tasks(earlier->id));
  BERTH_ASSIGN(const auto before, outputs_of(written, tasks));
  BERTH_ASSIGN(const auto now, outputs_of(tasks, written));
  std::ranges::set_difference(before, now, std::back_inserter(stale.paths));
  std::erase_if(stale.paths, [&](const std::string& path) {
    return !context.env->status(run.directory + "/" + path);
  });
  return stale;
}

}  // namespace berth::run
