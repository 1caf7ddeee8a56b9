// The implementation of Graph. A task is a number, which stands for its step and its position among
// the step's tasks; everything else about a task is computed when it is asked for, so that a
// million tasks cost little.
#pragma once

#include <set>
#include <unordered_map>

#include "berth/base/json_value.h"
#include "berth/flow/flow.h"
#include "berth/flow/table.h"

namespace berth::flow {

class Graph::Impl {
 public:
  Impl(Flow flow, World world) : flow_(std::move(flow)), world_(std::move(world)) {}

  Status begin();
  std::optional<Range> tasks(std::size_t step) const;
  std::string name(TaskIndex task) const;
  Words output_paths(TaskIndex task) const;
  std::optional<TaskIndex> find(std::string_view name) const;
  Result<Ready> take_ready();
  Result<TaskSpec> spec(TaskIndex task, std::optional<std::int64_t> attempt) const;
  Status finish(TaskIndex task, std::vector<fileset::Fileset> outputs, Metrics metrics);
  Status replace(TaskIndex task, std::vector<fileset::Fileset> outputs);
  std::vector<TaskIndex> take_released() { return std::exchange(released_, {}); }

  std::optional<Writer> file_writer(const std::string& path) const;

  const Flow& flow() const { return flow_; }
  const Words& notes() const { return notes_; }
  std::int64_t known() const { return static_cast<std::int64_t>(tasks_.size()); }
  std::size_t step_at(TaskIndex task) const { return tasks_[at(task)].step; }
  bool done() const { return open_steps_ == 0; }
  bool wanted(TaskIndex task) const { return tasks_[at(task)].wanted && asked(task); }
  bool is_read(TaskIndex task) const;

 private:
  enum class State : std::uint8_t { waiting, ready, finished, skipped };
  struct Task {
    std::uint32_t step = 0;
    State state = State::waiting;
    bool wanted = false;
  };
  /// An element of a variable's source.
  struct Element {
    std::string text{};              // the value, or the path in the task
    std::string key{};               // as key_text() gives it
    std::string world{};             // the source path, if it is a file outside the flow
    std::int64_t producer = -1;      // the task that writes it
    std::string below{};             // the path within that task's output; empty: all of it
    std::vector<std::string> own{};  // the values of Variable::own_names
  };
  using ElementIndex = std::uint32_t;
  enum class Wait : std::uint8_t {
    start,     // the successor's tasks start when all tasks of this step are done
    unfold,    // the successor unfolds when all tasks of this step are done
    elements,  // the successor unfolds with this step; each task waits for those of its elements
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
    std::vector<Edge> edges;                     // to the steps that wait for this one
    std::vector<std::vector<Element>> elements;  // of each variable
    // Instance i has of variable v the elements chosen[begins[i * variables + v], begins[… + 1]).
    std::vector<ElementIndex> chosen;
    std::vector<std::size_t> begins{0};
    std::vector<std::string> keys;                               // of the instances
    std::unordered_map<std::string_view, std::int64_t> by_key;   // empty where keys repeat
    std::string repeats;                                         // the first key that does
    std::vector<std::pair<std::int64_t, std::int64_t>> readers;  // producer, instance; sorted
    std::vector<std::uint32_t> producers_open;                   // of each instance
  };
  static std::size_t at(TaskIndex task) { return static_cast<std::size_t>(task.value); }
  /// What another try may have.
  static bool is_short(const Error& error) {
    return error.kind == ErrorKind::full || error.kind == ErrorKind::busy;
  }
  const Step& step(TaskIndex task) const { return flow_.steps[step_at(task)]; }
  TaskIndex task_of(std::size_t step, std::int64_t instance) const {
    return {states_[step].first + instance};
  }
  std::int64_t instance_of(TaskIndex task) const {
    return task.value - states_[step_at(task)].first;
  }
  State state_of(std::int64_t task) const { return tasks_[static_cast<std::size_t>(task)].state; }
  /// Of the instance, the elements of a variable: one, but for a group.
  std::span<const ElementIndex> chosen(TaskIndex task, std::size_t variable) const;
  /// These elements, without those whose tasks were skipped unless `skipped`.
  std::vector<const Element*> elements(TaskIndex task, std::size_t variable,
                                       bool skipped = false) const;
  std::unexpected<Error> wrong(const Step& step, int line, std::string_view what) const;

  // unfold.cc
  void connect();
  Status unfold_pending();
  Status unfold(std::size_t step);
  Result<Words> world_files(const Step& step, const Source& source, const std::string& key,
                            const std::string& path, bool pattern) const;
  std::vector<Element> written_elements(const Source& source, const std::string& pattern) const;
  void count_producers(std::size_t step);
  Status register_outputs(std::size_t step);
  Status check_world(std::size_t step) const;
  std::string two_writers(TaskIndex task, TaskIndex other) const;
  void settle(TaskIndex task, State state);
  void close(std::size_t step);
  void mark_ready(std::size_t step, std::int64_t instance);
  void mark_all_ready(std::size_t step);

  // conditions.cc
  std::string skipped_input(TaskIndex task) const;
  Result<std::string> why_skipped(TaskIndex task) const;
  bool has_any(const Source& source) const;
  bool any_written(const Source& source, const std::string& below) const;
  Result<std::string> why_not(TaskIndex task, const Condition& term) const;
  std::string why_no_file(TaskIndex task, const Condition& term) const;
  Result<std::string> why_no_value(TaskIndex task, const Condition& term) const;
  bool is_of_instance(const Step& step, const Condition& term) const;
  std::vector<TaskIndex> asked_tasks(TaskIndex task, const Condition& term) const;
  Result<JsonValue> value_of(TaskIndex asking, TaskIndex asked, const Condition& term) const;
  Result<JsonValue> json_value(TaskIndex asking, TaskIndex asked, const Condition& term) const;

  // readers.cc
  std::vector<std::int64_t> temporary_producers(TaskIndex task) const;
  void count_readers(std::size_t step);
  void release_after(TaskIndex settled);
  void release_steps_before(std::size_t step);
  void release_if_read(TaskIndex task);

  // makers.cc
  std::optional<TaskIndex> writer_of(const std::string& path) const;
  std::string made_by(const std::string& path, const Step& step, const Output& output,
                      std::string_view below) const;
  std::string declared_maker_of(const std::string& path) const;
  std::string maker_of(const std::string& path, bool missing) const;
  Status check_path(const Step& step, const std::string& path, int line) const;
  std::string missing_file(const Source& source, const std::string& path) const;
  std::string nearest_file(const std::string& path, Words candidates) const;

  // targets.cc
  Status choose_targets(const std::vector<std::size_t>& unfolded);
  void want_step(std::size_t step);
  void want_task(TaskIndex task);
  void want_needed();
  Status want_named(std::size_t step, std::string_view key);
  bool asked(TaskIndex task) const;

  // elements.cc
  Status read_tables();
  Status check_element_names() const;
  bool has_name(const Variable& variable, std::string_view name, int depth) const;
  void add_names(const Variable& variable, std::set<std::string>& names, int depth) const;
  Result<std::vector<Element>> elements_of(const Step& step, const Variable& variable) const;
  void add_table(const Variable& variable, std::vector<Element>& elements) const;
  void assign_keys(const Variable& variable, std::vector<Element>& elements) const;
  std::optional<std::string> name_of(const Variable& variable, const Element& element,
                                     std::string_view name, int depth = 0) const;

  // combine.cc
  Status combine(std::size_t step);
  void combine_product(const Step& step, StepState& state) const;
  Status combine_zip(const Step& step, StepState& state) const;
  Status combine_by(const Step& step, StepState& state) const;
  Result<std::string> by_of(const Step& step, const Variable& variable,
                            const Element& element) const;
  Status assign_instance_keys(std::size_t step);
  Result<std::string> by_of_instance(std::size_t step, std::int64_t instance) const;
  std::string key_of_elements(std::size_t step, std::int64_t instance) const;

  // spec.cc
  /// What a name stands for in a task: a parameter, a variable, a name of an element, index, key or
  /// env.NAME.
  std::optional<Words> value(TaskIndex task, std::string_view name) const;
  std::optional<Words> element_value(TaskIndex task, std::string_view name) const;
  std::string expanded(TaskIndex task, std::string_view text, bool pattern = false) const;
  std::string output_path(TaskIndex task, const Output& output) const;
  Status add_source(TaskIndex task, const Source& source, TaskInput input,
                    std::vector<TaskInput>& inputs) const;
  Status add_elements(TaskIndex task, std::size_t variable, TaskSpec& spec) const;
  Result<std::string> depfile_path(TaskIndex task,
                                   const std::vector<std::pair<std::string, Words>>& own) const;
  Result<fileset::Fileset> written(TaskIndex task, std::size_t output,
                                   const std::string& below) const;

  Flow flow_;
  World world_;
  std::vector<Task> tasks_;
  std::vector<StepState> states_;       // by step
  std::vector<std::uint32_t> pending_;  // steps that may be unfolded
  std::vector<TaskIndex> newly_ready_;  // ready tasks that take_ready() has not returned yet
  std::unordered_map<std::int64_t, std::vector<fileset::Fileset>> written_;  // by task
  std::unordered_map<std::int64_t, Metrics> metrics_;                        // by task
  std::unordered_map<std::int64_t, Error> undecided_;  // by task, whose `when` cannot be decided
  std::unordered_map<std::string, std::int64_t>
      writers_;  // path of an output -> the task that writes it
  std::unordered_map<std::string, std::int64_t>
      folders_;  // folder of an output -> a task that writes there
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::unordered_multimap<std::string_view, std::pair<std::size_t, const Output*>>
      declared_;  // paths of outputs as they are written -> the step
  std::unordered_map<std::string, Table> tables_;                // by path
  std::unordered_map<std::int64_t, std::int64_t> readers_open_;  // by the task of temporary outputs
  std::vector<TaskIndex> released_;                              // for take_released()
  std::set<std::int64_t> was_released_;
  bool has_temporary_ = false;  // some step
  Words notes_;
  std::vector<bool> wanted_steps_;      // all of their tasks are
  std::vector<TaskIndex> just_wanted_;  // what they need is not wanted yet
  std::int64_t open_steps_ = 0;
};

inline constexpr int kMostCarried = 100;  // steps through which an element's names are handed on

}  // namespace berth::flow
