// Flow files: steps that read and write files, and the graph of their tasks. A flow is used like
// this:
//
//   read_flow(text)          the steps, checked on their own: keys, names, cycles, placeholders
//   check_fits(flow, total)  whether every step fits the empty machine
//   Graph::build(flow, world) the graph, checked for missing inputs and two writers of one output
//   graph.take_ready()       the tasks that can run now; graph.spec(task) is one in full
//   record(spec, digests)    what the task depends on, as text; its SHA-256 is the task's digest
//   graph.finish(task, …)    reports its outputs; then take_ready() again, until graph.done()
//
// A foreach over another step's outputs unfolds when these are known, so tasks appear as others
// finish. Pure: World answers every question about files and environment. Ownership: a Graph owns
// its flow. Threads: one at a time. Errors: invalid, with file, line and key; a failed call changes
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/digest.h"
#include "berth/base/ids.h"
#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/exec/command.h"
#include "berth/exec/messages.h"
#include "berth/fileset/fileset.h"
#include "berth/resource/resources.h"

namespace berth::flow {

using Words = std::vector<std::string>;
using StepIndex = Id<struct StepTag>;      // index into Flow::steps
using TaskIndex = Id<struct FlowTaskTag>;  // from 0, in the order in which they became known

inline constexpr std::int64_t kMostTasks = 2'000'000;                  // of one flow
inline constexpr std::size_t kMostVariables = 8;                       // of one foreach
inline constexpr std::string_view kParamsFile = ".berth-params.json";  // {params_file}, in the task

/// A source of files: an output of a step, or files that exist before the flow.
struct Source {
  std::string text;               // as written: "split.parts/*", "data/{name}.txt"
  std::optional<StepIndex> step;  // the step that writes them; nullopt: none
  std::size_t output = 0;         // index of that step's output
  std::string
      pattern;  // within that output (empty: all of it), or the path or pattern of other files
  int line = 0;
};

struct Input {
  std::string name;             // {in.name}
  std::vector<Source> sources;  // in this order
  int line = 0;
};

struct Output {
  std::string name;  // {out.name}
  std::string path;  // beside the file, may hold {placeholders}; no slash at its end
  bool directory = false;
  int line = 0;
};

/// One variable of a foreach: every combination of the variables is a task; the last varies
/// fastest.
struct Variable {
  std::string name;
  Words values;                 // as written in the file, or
  std::optional<Source> files;  // the paths found
  int line = 0;
};

/// One term of `when`; all of them must hold.
struct Condition {
  enum class Kind : std::uint8_t { equals, exists };
  Kind kind = Kind::equals;
  bool negated = false;
  std::string left;   // equals: the name of a value, or "env.NAME"
  std::string right;  // the value that it is compared with
  Source path{};      // exists: may hold {placeholders}; evaluated when its step is done
};

struct Step {
  std::string name;
  exec::Command run;
  std::vector<Input> in;
  std::vector<Output> out;  // without outputs the step is never cached
  std::vector<Variable> foreach;
  std::vector<StepIndex> needs;
  std::vector<std::pair<std::string, Words>> params;  // the flow's, then the step's own
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Condition> when;
  Resources resources;
  machine::DeviceSelection selection;
  Duration timeout{};    // 0: none
  bool enforce = false;  // the step runs only where its limits are enforced
  exec::GpuMemOver gpu_mem_over = exec::GpuMemOver::warn;
  int retries = 0;
  std::int64_t priority = 0;
  std::vector<StepIndex> after;  // all steps that it waits for, ascending, each once
  int line = 0, run_line = 0, resources_line = 0, when_line = 0;
};

struct Flow {
  std::string name, file;
  std::vector<Step> steps;
  std::vector<std::string> clusters = {};  // where it runs, the main one first; empty: this machine
};

/// Reads the text of a file named `file`; `shell` runs the commands of steps that name none.
Result<Flow> read_flow(std::string_view text, const std::string& file, const Words& shell = {});

/// Checks that every step could run if all of `total` were free. Errors: invalid, with the first
/// step that could not and the short resource.
Status check_fits(const Flow& flow, const Resources& total);

/// The caller's answers about files and environment. Paths are relative to the flow's folder, or
/// absolute.
struct World {
  std::function<bool(const std::string& path)> exists;
  /// The matching paths, sorted bytewise, as fileset::glob() returns them.
  std::function<Result<Words>(const std::string& pattern)> glob;
  std::function<std::optional<std::string>(const std::string& name)> variable;  // environment
  /// Whether the `when` of a task held when an earlier runner evaluated it; nullopt, or no
  /// function: it was not evaluated.
  std::function<std::optional<bool>(const std::string& task)> held = {};
};

struct TaskInput {
  std::string name{};   // the name of the input or variable
  std::string place{};  // the path in the task's directory
  std::string world{};  // the source path; empty: a step wrote it, and `content` has it
  fileset::Fileset content{};
};

struct TaskOutput {
  std::string name;
  std::string path;  // in the task's directory, and in the flow's folder
  bool directory = false;
};

/// One task in full, except for what its step says of all its tasks.
struct TaskSpec {
  std::string name{};        // "split", "count/0"
  Words command{};           // the words of the process; with a shell, its words and the script
  bool params_file = false;  // whether it needs kParamsFile, which holds params
  std::vector<std::pair<std::string, std::string>>
      params{};  // with variables; lists are joined by blanks
  std::vector<std::pair<std::string, std::string>> environment{};
  std::vector<TaskInput> inputs{};  // sorted by `place`, which are distinct and not nested
  std::vector<TaskOutput> outputs{};
};

class Graph {
 public:
  static Result<Graph> build(Flow flow, World world);

  Graph(Graph&&) noexcept;
  ~Graph();

  const Flow& flow() const;
  std::int64_t known() const;  // the number of tasks so far
  /// The tasks of a step, consecutive from the first; nullopt until it is unfolded.
  struct Range {
    TaskIndex first;
    std::int64_t count = 0;
  };
  std::optional<Range> tasks(StepIndex step) const;
  StepIndex step_of(TaskIndex task) const;
  std::string name(TaskIndex task) const;  // "split", "count/0"
  std::optional<TaskIndex> find(std::string_view name) const;

  /// Returns each task once, when everything that it waits for is finished. `skipped` are tasks
  /// whose `when` does not hold, or of which an input has no file because the tasks that write it
  /// were skipped. Errors: as finish().
  struct Ready {
    std::vector<TaskIndex> run, skipped;
  };
  Result<Ready> take_ready();

  /// One task in full, which was ready. Errors: invalid if a pattern of its inputs matches nothing.
  Result<TaskSpec> spec(TaskIndex task) const;

  /// Reports a finished task with its outputs in the order of Step::out. A resume goes through the
  /// same loop and finishes the tasks that are recorded as finished: their names are the same,
  /// their numbers may differ. Errors: invalid if a step that unfolds now is wrong (two writers of
  /// one output, say); then the flow has failed.
  Status finish(TaskIndex task, std::vector<fileset::Fileset> outputs);

  /// Whether every step is unfolded and all its tasks are finished or skipped.
  bool done() const;

 private:
  class Impl;
  explicit Graph(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Everything that a task depends on, one item a line: command words, declared environment,
/// parameters, inputs with their digests (in the order of spec.inputs), declared outputs; never
/// resources. The task's digest is the SHA-256 of this text.
std::string record(const TaskSpec& spec, std::span<const Digest> inputs);

/// One difference between two records: "input data/a.txt changed", "parameter lr: 0.1 -> 0.2".
struct Change {
  std::string what;  // "command", "environment", "parameter", "input" or "output"
  std::string name;  // its name; empty for the command
  std::string before, after;
  bool is_new = false, is_gone = false;
};
/// Errors: corrupt if record() did not write it.
Result<std::vector<Change>> changes(std::string_view before, std::string_view after);
std::string to_string(const Change& change);

}  // namespace berth::flow
