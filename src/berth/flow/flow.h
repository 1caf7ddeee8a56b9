// Flow files: steps that read files and write files, and the graph of tasks they come to. One goes
// through it like this:
//
//   read_flow(text)          the steps, checked by themselves: keys, names, cycles, placeholders
//   check_fits(flow, total)  whether every step fits the machine at all
//   Graph::build(flow, world) checked against the world: missing inputs, two writers of one output
//   graph.take_ready()       what can run now; graph.spec(task) is the whole of one
//   record(spec, digests)    what went into it, as text; its SHA-256 is the task's digest
//   graph.finish(task, …)    with its outputs; then take_ready() again, until graph.done()
//
// A foreach over what another step writes unfolds when that is known, so tasks appear as others
// finish. Pure: the world is asked through World alone. Ownership: a Graph owns its flow. Threads:
// one at a time. Failure: invalid, with file, line and key; nothing is changed.
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
using StepIndex = Id<struct StepTag>;      // its place in Flow::steps
using TaskIndex = Id<struct FlowTaskTag>;  // from 0, in the order in which they became known

inline constexpr std::int64_t kMostTasks = 2'000'000;                  // of one flow
inline constexpr std::size_t kMostVariables = 8;                       // of one foreach
inline constexpr std::string_view kParamsFile = ".berth-params.json";  // {params_file}, in the task

/// Files of one kind: those that a step writes, or those of the world.
struct Source {
  std::string text;               // as written: "split.parts/*", "data/{name}.txt"
  std::optional<StepIndex> step;  // that writes them
  std::size_t output = 0;         // of that step
  std::string pattern;  // within that output, empty: it whole; of the world: the path or pattern
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

/// One variable of a foreach: every combination of all of them is a task, the last turning fastest.
struct Variable {
  std::string name;
  Words values;                 // as they stand in the file, or
  std::optional<Source> files;  // the paths found
  int line = 0;
};

/// One term of `when`; all of them must hold.
struct Condition {
  enum class Kind : std::uint8_t { equals, exists };
  Kind kind = Kind::equals;
  bool negated = false;
  std::string left;   // of equals: the name of a value, or "env.NAME"
  std::string right;  // what it is compared with
  Source path{};      // of exists: may hold {placeholders}; asked when its step is done
};

struct Step {
  std::string name;
  exec::Command run;
  std::vector<Input> in;
  std::vector<Output> out;  // none: never cached
  std::vector<Variable> foreach;
  std::vector<StepIndex> needs;
  std::vector<std::pair<std::string, Words>> params;  // the flow's, then the step's own
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Condition> when;
  Resources resources;
  machine::DeviceSelection selection;
  Duration timeout{};    // 0: none
  bool enforce = false;  // a machine that cannot hold it to its limits does not run it
  exec::GpuMemOver gpu_mem_over = exec::GpuMemOver::warn;
  int retries = 0;
  std::int64_t priority = 0;
  std::vector<StepIndex> after;  // all that it waits for, each once, ascending
  int line = 0, run_line = 0, resources_line = 0, when_line = 0;
};

struct Flow {
  std::string name, file;
  std::vector<Step> steps;
  std::vector<std::string> clusters = {};  // where it runs, the main one first; empty: here
};

/// From the text of a file named `file`; `shell` is that of its commands where it names none.
Result<Flow> read_flow(std::string_view text, const std::string& file, const Words& shell = {});

/// invalid: names the first step that could not run even if all of `total` were free, and what it
/// has too little of.
Status check_fits(const Flow& flow, const Resources& total);

/// What the caller tells of the world. Paths are from the flow's folder, or absolute.
struct World {
  std::function<bool(const std::string& path)> exists;
  /// Sorted bytewise; fileset::glob() answers it.
  std::function<Result<Words>(const std::string& pattern)> glob;
  std::function<std::optional<std::string>(const std::string& name)> variable;  // environment
  /// Whether the `when` of a task held when it was asked first, by an earlier runner; nullopt, or
  /// no function: it was not asked.
  std::function<std::optional<bool>(const std::string& task)> held = {};
};

struct TaskInput {
  std::string name{};   // of the input or variable
  std::string place{};  // where the task finds it, in its own directory
  std::string world{};  // where it comes from; empty: from a step, and `content` is what it wrote
  fileset::Fileset content{};
};

struct TaskOutput {
  std::string name;
  std::string path;  // in the task's directory, and beside the flow's file
  bool directory = false;
};

/// All there is to know of one task, but for what its step says of all of them.
struct TaskSpec {
  std::string name{};        // "split", "count/0"
  Words command{};           // what is started: for a shell its words, and the text
  bool params_file = false;  // whether it wants kParamsFile, made of params
  std::vector<std::pair<std::string, std::string>> params{};  // and variables; lists with blanks
  std::vector<std::pair<std::string, std::string>> environment{};
  std::vector<TaskInput> inputs{};  // by place, each place once, none within another
  std::vector<TaskOutput> outputs{};
};

class Graph {
 public:
  static Result<Graph> build(Flow flow, World world);

  Graph(Graph&&) noexcept;
  ~Graph();

  const Flow& flow() const;
  std::int64_t known() const;  // tasks so far
  /// Its tasks, consecutive from the first; nullopt until it is unfolded.
  struct Range {
    TaskIndex first;
    std::int64_t count = 0;
  };
  std::optional<Range> tasks(StepIndex step) const;
  StepIndex step_of(TaskIndex task) const;
  std::string name(TaskIndex task) const;  // "split", "count/0"
  std::optional<TaskIndex> find(std::string_view name) const;

  /// Each task once, when all it waits for is finished. `skipped` are those whose `when` does not
  /// hold, or of which an input has no file at all because the tasks that would write it were
  /// skipped. Fails as finish() does.
  struct Ready {
    std::vector<TaskIndex> run, skipped;
  };
  Result<Ready> take_ready();

  /// Of a task that was ready. invalid: a pattern of its inputs matches nothing.
  Result<TaskSpec> spec(TaskIndex task) const;

  /// With its outputs in the order of Step::out. On a resume, go through the same loop and finish
  /// what is recorded as finished: names are what they were; numbers need not be. invalid: what
  /// unfolds now cannot be (two writers of one output, say): the flow has failed.
  Status finish(TaskIndex task, std::vector<fileset::Fileset> outputs);

  /// Whether every step is unfolded and all its tasks are finished or skipped.
  bool done() const;

 private:
  class Inside;
  explicit Graph(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

/// What went into a task, one thing a line: command words, declared environment, parameters, inputs
/// with the digest of each (in the order of spec.inputs), declared outputs. Never resources. The
/// task's digest is the SHA-256 of this text.
std::string record(const TaskSpec& spec, std::span<const Digest> inputs);

/// One difference between two records: "input data/a.txt changed", "parameter lr: 0.1 -> 0.2".
struct Change {
  std::string what;  // "command", "environment", "parameter", "input" or "output"
  std::string name;  // which one; empty for the command
  std::string before, after;
  bool is_new = false, is_gone = false;
};
/// corrupt: not what record() gives.
Result<std::vector<Change>> changes(std::string_view before, std::string_view after);
std::string to_string(const Change& change);

}  // namespace berth::flow
