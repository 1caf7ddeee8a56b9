// The implementation of Graph. A task is a number, which stands for its step and its position among
// the step's tasks; everything else about a task is computed when it is asked for, so that a
// million tasks cost little.
#pragma once

#include <unordered_map>

#include "berth/flow/flow.h"

namespace berth::flow {

class Graph::Impl {
 public:
  Impl(Flow flow, World world) : flow_(std::move(flow)), world_(std::move(world)) {}

  Status begin();
  std::optional<Range> tasks(std::size_t step) const;
  std::string name(TaskIndex task) const;
  std::optional<TaskIndex> find(std::string_view name) const;
  Result<Ready> take_ready();
  Result<TaskSpec> spec(TaskIndex task) const;
  Status finish(TaskIndex task, std::vector<fileset::Fileset> outputs);

  const Flow& flow() const { return flow_; }
  std::int64_t known() const { return static_cast<std::int64_t>(tasks_.size()); }
  std::size_t step_at(TaskIndex task) const { return tasks_[at(task)].step; }
  bool done() const { return open_steps_ == 0; }

 private:
  enum class State : std::uint8_t { waiting, ready, finished, skipped };
  struct Task {
    std::uint32_t step = 0;
    State state = State::waiting;
  };
  /// A value of a variable of a foreach.
  struct Item {
    std::string text;            // the value, or the path in the task
    std::string world;           // the source path, if it is a file outside the flow
    std::int64_t producer = -1;  // the task that writes it
    std::string below;           // the path within that task's output; empty: all of it
  };
  enum class Wait : std::uint8_t {
    start,     // the successor's tasks start when all tasks of this step are done
    unfold,    // the successor unfolds when all tasks of this step are done
    pairwise,  // the successor unfolds with this step; its task i waits for task i of this step
  };
  struct Edge {
    std::uint32_t to = 0;
    Wait wait = Wait::start;
    auto operator<=>(const Edge&) const = default;
  };
  struct StepState {
    std::int64_t first = -1, count = 0;  // tasks; -1: not unfolded
    std::int64_t open = 0;               // tasks that are neither finished nor skipped
    int unfold_waits = 0, start_waits = 0;
    std::vector<std::vector<Item>> items;  // of each variable
    std::vector<Edge> edges;               // to the steps that wait for this one
  };
  /// The names of a task and their values.
  using Lookup = std::vector<std::pair<std::string, Words>>;

  static std::size_t at(TaskIndex task) { return static_cast<std::size_t>(task.value); }
  const Step& step(TaskIndex task) const { return flow_.steps[step_at(task)]; }
  TaskIndex task_of(std::size_t step, std::int64_t instance) const {
    return {states_[step].first + instance};
  }
  static bool is_pairwise(const Step& step);
  std::unexpected<Error> wrong(const Step& step, int line, std::string_view what) const;

  // unfold.cc
  void connect();
  Status unfold_pending();
  Status unfold(std::size_t step);
  Result<std::vector<Item>> items_of(const Step& step, const Variable& variable) const;
  Result<Words> world_files(const Step& step, const Source& source, const std::string& key,
                            const std::string& path) const;
  std::vector<Item> written_items(const Source& source, const std::string& pattern) const;
  Status register_outputs(std::size_t step);
  Status check_world(std::size_t step) const;
  Status check_path(const Step& step, const std::string& path, int line) const;
  std::optional<TaskIndex> writer_of(const std::string& path) const;
  void settle(TaskIndex task, State state);
  void close(std::size_t step);
  void mark_ready(std::size_t step, std::int64_t instance);
  void mark_all_ready(std::size_t step);
  bool skips(TaskIndex task) const;
  bool has_any(const Source& source) const;
  bool any_written(const Source& source, const std::string& below) const;
  bool holds(const Condition& condition, const Lookup& values) const;

  // spec.cc
  const Item& item(TaskIndex task, std::size_t variable) const;
  Lookup values_of(TaskIndex task) const;
  std::string output_path(TaskIndex task, const Output& output) const;
  Status add_source(const Step& step, const Source& source, const Lookup& values, TaskInput input,
                    std::vector<TaskInput>& inputs) const;
  Result<fileset::Fileset> written(TaskIndex task, std::size_t output,
                                   const std::string& below) const;

  Flow flow_;
  World world_;
  std::vector<Task> tasks_;
  std::vector<StepState> states_;       // by step
  std::vector<std::uint32_t> pending_;  // steps that may be unfolded
  std::vector<TaskIndex> newly_ready_;  // ready tasks that take_ready() has not returned yet
  std::unordered_map<std::int64_t, std::vector<fileset::Fileset>> written_;  // by task
  std::unordered_map<std::string, std::int64_t>
      writers_;  // path of an output -> the task that writes it
  std::unordered_map<std::string, std::int64_t>
      folders_;  // folder of an output -> a task that writes there
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::int64_t open_steps_ = 0;
};

/// The value of `name` in a path, a list with blanks between its words. For expand().
std::optional<std::string> value_of(const std::vector<std::pair<std::string, Words>>& values,
                                    std::string_view name);

}  // namespace berth::flow
