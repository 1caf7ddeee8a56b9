#include "berth/run/flows/flow_graph.h"

#include <algorithm>

#include "berth/run/state/skips.h"

namespace berth::run {

Status FlowGraph::build(flow::Flow flow, flow::World world,
                        std::span<const store::TaskRecord> tasks) {
  for (const auto& task : tasks) {
    numbers_.emplace(task.label, task.number);
    if (store::final(task.state) || task.state == store::TaskState::running)
      recorded_.emplace(task.label, task);
  }
  world.held = [this](const std::string& name) -> std::optional<bool> {
    const auto* known = recorded(name);
    if (known == nullptr) return std::nullopt;
    return known->state != store::TaskState::skipped;
  };
  ready_ = ReadyTasks(flow.steps);
  BERTH_ASSIGN(auto graph, flow::Graph::build(std::move(flow), std::move(world)));
  graph_.emplace(std::move(graph));
  noted_ = graph_->notes().size();  // these were told when the run was submitted
  return {};
}

const flow::Step& FlowGraph::step(flow::TaskIndex task) const {
  return graph_->flow().steps[at(task)];
}

TaskNumber FlowGraph::number(const std::string& name, Next& next) {
  const TaskNumber following{static_cast<std::int64_t>(numbers_.size()) + 1};
  const auto [found, is_new] = numbers_.try_emplace(name, following);
  if (is_new) next.added.push_back({name, {}});
  return found->second;
}

const store::TaskRecord* FlowGraph::recorded(const std::string& name) const {
  const auto found = recorded_.find(name);
  return found == recorded_.end() ? nullptr : &found->second;
}

Status FlowGraph::update(Next& next) {
  BERTH_ASSIGN(const auto ready, graph_->take_ready());
  for (; seen_ < graph_->known(); ++seen_)
    if (graph_->wanted({seen_})) (void)number(graph_->name({seen_}), next);
  std::ranges::copy(ready.taken, std::back_inserter(taken_));
  for (; noted_ < graph_->notes().size(); ++noted_) next.notes.push_back(graph_->notes()[noted_]);
  for (const auto task : ready.run) {
    if (recorded(graph_->name(task)) != nullptr)
      ready_.add_begun(task);
    else
      ready_.add(at(task), task);
  }
  for (std::size_t i = 0; i < ready.skipped.size(); ++i) {
    const std::string name = graph_->name(ready.skipped[i]);
    const TaskNumber skipped = number(name, next);
    if (recorded(name) == nullptr)
      next.changes.emplace_back(store::TaskKeyed{skipped, {}, skip_record(ready.because[i])});
    forget(name);
    next.settled.push_back({skipped, store::TaskState::skipped});
  }
  // An edited flow may have fewer tasks than the run.
  if (graph_->done() && !std::exchange(done_, true))
    for (const auto& [name, number] : numbers_)
      if (!graph_->find(name)) next.settled.push_back({number, store::TaskState::skipped});
  return {};
}

}  // namespace berth::run
