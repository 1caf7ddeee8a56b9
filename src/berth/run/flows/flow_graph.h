// The graph of a flow joined with what the store has of its tasks: their numbers, what earlier
// runners recorded of them, and which are ready to be looked at.
//
// Ownership: it owns the graph, whose questions to the world it answers until it goes. Threads:
// one. Failure: an Error of the graph is the flow's, and ends the run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "berth/run/drive/workload.h"
#include "berth/run/flows/ready_tasks.h"

namespace berth::run {

class FlowGraph {
 public:
  FlowGraph() = default;
  FlowGraph(const FlowGraph&) = delete;
  FlowGraph& operator=(const FlowGraph&) = delete;

  /// First of all, with the tasks as recorded.
  Status build(flow::Flow flow, flow::World world, std::span<const store::TaskRecord> tasks);
  flow::Graph& graph() { return *graph_; }
  const flow::Graph& graph() const { return *graph_; }
  const flow::Step& step(flow::TaskIndex task) const;

  /// What has become known and ready since: new tasks are added, those to skip are settled.
  Status update(Next& next);
  /// Tasks are numbered as they become known; after a resume most are already.
  TaskNumber number(const std::string& name, Next& next);
  /// What an earlier runner recorded of a task that was running or final, until it is forgotten.
  const store::TaskRecord* recorded(const std::string& name) const;
  void forget(const std::string& name) { recorded_.erase(name); }

  /// Tasks whose outputs are taken as they lie, for want of anybody who makes them in this run.
  std::vector<flow::TaskIndex> take_taken() { return std::exchange(taken_, {}); }
  bool has_next() const { return ready_.has_next(); }
  std::optional<flow::TaskIndex> take() { return ready_.take(); }
  void put_back(flow::TaskIndex task) { ready_.put_back(at(task), task); }
  /// While a task is prepared and not started, or waits for its files, it has a room.
  void take_room(flow::TaskIndex task) { ready_.take_room(at(task)); }
  void free_room(flow::TaskIndex task) { ready_.free_room(at(task)); }

 private:
  std::size_t at(flow::TaskIndex task) const {
    return static_cast<std::size_t>(graph_->step_of(task).value);
  }

  std::optional<flow::Graph> graph_;
  std::unordered_map<std::string, TaskNumber> numbers_;          // by name
  std::unordered_map<std::string, store::TaskRecord> recorded_;  // by name
  ReadyTasks ready_;
  std::vector<flow::TaskIndex> taken_;
  std::size_t noted_ = 0;  // notes of the graph that were told
  std::int64_t seen_ = 0;  // tasks of the graph
  bool done_ = false;      // so is the graph, and tasks that it does not have are settled
};

}  // namespace berth::run
