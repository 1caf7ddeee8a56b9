#include "berth/engine/queries/flow_steps.h"

#include <algorithm>
#include <set>

#include "berth/run/flows/flow_run.h"

namespace berth::engine {

std::string_view step_name(std::string_view label) {
  return label.substr(0, label.find('/'));
}

std::vector<StepCounts> step_counts(const flow::Flow& flow, const store::RunRecord& run,
                                    const std::vector<store::TaskRecord>& tasks) {
  const bool done = run.state == store::RunState::done;
  std::vector<StepCounts> steps;
  for (const auto& step : flow.steps)
    steps.push_back({.name = step.name, .counts = {}, .known = done || step.variables.empty()});
  for (const auto& task : tasks) {
    const auto step = std::ranges::find(steps, step_name(task.label), &StepCounts::name);
    if (step == steps.end()) continue;
    step->known = true;
    store::Counts& counts = step->counts;
    switch (task.state) {
      case store::TaskState::waiting: ++counts.waiting; break;
      case store::TaskState::running: ++counts.running; break;
      case store::TaskState::done: ++counts.done; break;
      case store::TaskState::cached: ++counts.cached; break;
      case store::TaskState::skipped: ++counts.skipped; break;
      case store::TaskState::failed: ++counts.failed; break;
      case store::TaskState::stopped: ++counts.stopped; break;
    }
  }
  return steps;
}

const store::TaskRecord* first_failed_before(const flow::Flow& flow,
                                             const std::vector<store::TaskRecord>& tasks,
                                             std::string_view label) {
  std::set<std::string_view> before;
  std::vector<std::string_view> open{step_name(label)};
  while (!open.empty()) {
    const auto step = std::ranges::find(flow.steps, open.back(), &flow::Step::name);
    open.pop_back();
    if (step == flow.steps.end()) continue;
    for (const auto after : step->after) {
      const std::string& name = flow.steps[static_cast<std::size_t>(after.value)].name;
      if (before.insert(name).second) open.push_back(name);
    }
  }
  const store::TaskRecord* first = nullptr;
  for (const auto& task : tasks)
    if (task.state == store::TaskState::failed && before.contains(step_name(task.label)) &&
        (first == nullptr || task.ended < first->ended))
      first = &task;
  return first;
}

std::string waits_for(const flow::Flow& flow, const std::vector<StepCounts>& steps,
                      std::string_view label) {
  const auto step = std::ranges::find(flow.steps, step_name(label), &flow::Step::name);
  if (step == flow.steps.end()) return {};
  for (const auto before : step->after) {
    const StepCounts& other = steps[static_cast<std::size_t>(before.value)];
    if (other.counts.failed > 0)
      return fmt::format("{} of the {} tasks of {}, which it waits for, failed",
                         other.counts.failed, other.counts.total(), other.name);
    const std::int64_t open = other.counts.waiting + other.counts.running + other.counts.stopped;
    if (open > 0)
      return fmt::format("{} of the {} tasks of {}, which it waits for, are not done yet", open,
                         other.counts.total(), other.name);
    if (!other.known) return fmt::format("{}, which it waits for, has no tasks yet", other.name);
  }
  return {};
}

Result<flow::Flow> flow_of(const store::RunRecord& run) {
  BERTH_ASSIGN(const auto program, run::flow_program(run.spec_json));
  return run::read_flow(program);
}

}  // namespace berth::engine
