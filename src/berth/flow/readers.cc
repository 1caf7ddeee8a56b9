// Who still reads what is temporary.
#include <algorithm>

#include "berth/flow/graph.h"

namespace berth::flow {

/// The tasks with temporary outputs that made the task's elements, each once.
std::vector<std::int64_t> Graph::Impl::temporary_producers(TaskIndex task) const {
  std::vector<std::int64_t> producers;
  const StepState& state = states_[step_at(task)];
  for (std::size_t i = 0; i < state.elements.size(); ++i)
    for (const ElementIndex each : chosen(task, i)) {
      const std::int64_t producer = state.elements[i][each].producer;
      if (producer >= 0 && step({producer}).temp) producers.push_back(producer);
    }
  std::ranges::sort(producers);
  const auto again = std::ranges::unique(producers);
  producers.erase(again.begin(), again.end());
  return producers;
}

void Graph::Impl::count_readers(std::size_t index) {
  if (!has_temporary_) return;
  for (std::int64_t i = 0; i < states_[index].count; ++i)
    for (const auto producer : temporary_producers(task_of(index, i))) ++readers_open_[producer];
  release_steps_before(index);
}

void Graph::Impl::release_after(TaskIndex settled) {
  if (!has_temporary_) return;
  for (const auto producer : temporary_producers(settled)) {
    --readers_open_[producer];
    release_if_read({producer});
  }
  if (step(settled).temp) release_if_read(settled);
  if (states_[step_at(settled)].open == 0) release_steps_before(step_at(settled));
}

void Graph::Impl::release_steps_before(std::size_t index) {
  for (const StepIndex before : flow_.steps[index].after) {
    const auto step = static_cast<std::size_t>(before.value);
    if (!flow_.steps[step].temp) continue;
    for (std::int64_t i = 0; i < states_[step].count; ++i) release_if_read(task_of(step, i));
  }
}

void Graph::Impl::release_if_read(TaskIndex task) {
  if (state_of(task.value) != State::finished || was_released_.contains(task.value)) return;
  const auto open = readers_open_.find(task.value);
  if (open != readers_open_.end() && open->second > 0) return;
  for (const Edge& edge : states_[step_at(task)].edges) {
    const StepState& reader = states_[edge.to];
    if (reader.first < 0 || (edge.wait != Wait::elements && reader.open > 0)) return;
  }
  was_released_.insert(task.value);
  released_.push_back(task);
}

Status Graph::Impl::replace(TaskIndex task, std::vector<fileset::Fileset> outputs) {
  const auto known = written_.find(task.value);
  BERTH_ASSERT(known != written_.end() && outputs.size() == known->second.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (fileset::paths(outputs[i]) != fileset::paths(known->second[i]))
      return wrong(step(task), step(task).out[i].line,
                   fmt::format("out.{}: {} was made again and contains other files than the ones "
                               "that tasks already used; run it with --force {}",
                               step(task).out[i].name, name(task), step(task).name));
  known->second = std::move(outputs);
  return {};
}

}  // namespace berth::flow
