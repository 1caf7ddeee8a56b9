// Flow files: steps that read and write files, and the graph of their tasks. A flow is used like
// this:
//
//   read_flow(text)          the steps, checked on their own: keys, names, cycles, placeholders
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

#include <array>
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
#include "berth/base/names.h"
#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/exec/command.h"
#include "berth/exec/labels.h"
#include "berth/exec/messages.h"
#include "berth/exec/notify.h"
#include "berth/fileset/fileset.h"
#include "berth/flow/expression.h"
#include "berth/resource/resources.h"

namespace berth::flow {

/// The largest text of a flow that is read; 200,000 written steps have about 18 MB.
inline constexpr std::size_t kMostFlowBytes = 64U << 20;

using Words = std::vector<std::string>;
using StepIndex = Id<struct StepTag>;      // index into Flow::steps
using TaskIndex = Id<struct FlowTaskTag>;  // from 0, in the order in which they became known

inline constexpr std::int64_t kMostTasks = 2'000'000;  // of one flow
inline constexpr std::size_t kMostVariables = 8;       // of one step
// Files in a task's directory: {params_file}; and of a step with a script the script, and what its
// parameters, inputs and outputs are, {"params": {NAME: TEXT}, "in": {NAME: [PATH]}, "out": {NAME:
// PATH}}. A script has them in BERTH_PARAM_NAME, BERTH_IN_NAME (a path a line) and BERTH_OUT_NAME
// too.
inline constexpr std::string_view kParamsFile = ".berth-params.json";
inline constexpr std::string_view kScriptFile = ".berth-script";
inline constexpr std::string_view kTaskFile = ".berth-task.json";

/// A source of files: an output of a step, or files that exist before the flow, here or elsewhere
/// (base/url.h).
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
  bool s3 = false;  // it goes to a URL of S3, for which its path in the task stands
};

/// A variable of a step that has several instances, and the source of its elements: `values`, or
/// `files`, or the rows of `table`. Each element has a key, and names that follow the variable's
/// own in braces ({x.stem}): those of kDerivedNames, its `own_names`, and what the instance that
/// made it was called by.
struct Variable {
  std::string name;
  Words values{};                 // as written in the file
  std::optional<Source> files{};  // the paths found; its pattern may have named parts
  std::string table{};            // the path of a table
  Words own_names{};              // the named parts; the columns, once the table was read
  bool optional = false;          // of a join: what has no partner is the empty text
  int line = 0;
};
inline constexpr std::array<std::string_view, 5> kDerivedNames{"key", "name", "stem", "ext", "dir"};

/// How the elements of a step's variables make its instances, each of which is a task.
enum class Combine : std::uint8_t {
  product,  // foreach: every combination; the last variable varies fastest
  zip,      // by position
  join,     // those whose `by` is the same
  group,    // one instance for each value of `by`, with all elements that have it
};
inline constexpr auto kCombineNames = names<Combine>({{Combine::product, "foreach"},
                                                      {Combine::zip, "zip"},
                                                      {Combine::join, "join"},
                                                      {Combine::group, "group"}});

/// A name in braces that belongs to an element of a variable, and where it stands.
struct ElementName {
  std::string name;   // "x.stem"
  std::string where;  // "run", "out.bam"
  int line = 0;
};

/// One term of `when`; all of them must hold.
struct Condition {
  enum class Kind : std::uint8_t { value, exists, metric, json };
  enum class Sign : std::uint8_t { equal, unequal, less, at_most, more, at_least };
  Kind kind = Kind::value;
  Sign sign = Sign::equal;
  bool negated = false;  // exists
  std::string left;      // value: its name, or "env.NAME"
  Words keys{};          // json: the way to a value; metric: its name
  std::string right;     // what the value is compared with
  bool names_some{};     // whether that has {placeholders}
  Source path{};         // exists, json: may hold {placeholders}; metric: its step. Waited for.
  std::string text{};    // the left side as one would write it
};
inline constexpr auto kSignNames = names<Condition::Sign>({{Condition::Sign::equal, "=="},
                                                           {Condition::Sign::unequal, "!="},
                                                           {Condition::Sign::less, "<"},
                                                           {Condition::Sign::at_most, "<="},
                                                           {Condition::Sign::more, ">"},
                                                           {Condition::Sign::at_least, ">="}});
inline constexpr std::size_t kMostJsonBytes = 1U << 20;  // of a file that a condition reads

/// An amount that depends on the attempt.
struct ScaledAmount {
  std::string resource;  // or kTimeLimit
  Expression amount{};
  int line = 0;
};
inline constexpr std::string_view kTimeLimit = "timeout";

/// What earlier runs tell of a step's use of a resource, or of its time: in the counts of
/// Resources, or in milliseconds.
struct Advised {
  std::string step, resource;  // the resource, or kTimeLimit
  std::int64_t amount = 0;
  std::int64_t attempts = 0;  // that tell it
  friend bool operator==(const Advised&, const Advised&) = default;
};

struct Step {
  std::string name;  // of a sub-flow: "align.map"
  std::string file;  // in which it stands
  exec::Command run;
  std::string script;  // which `run` starts as kScriptFile; as it was written, names and all
  exec::Container container{};  // in which its tasks run
  std::string image_id;         // which image its name means; empty: not known
  std::string image_there;      // what the engine calls exactly that image; empty: as named
  std::vector<Input> in;
  std::vector<Output> out;          // without outputs the step is never cached
  std::vector<Variable> variables;  // none: the step is one task
  Combine combine = Combine::product;
  Words by;                                // of join and group; empty: the key
  std::string key;                         // what an instance is called by; empty: its elements
  std::vector<ElementName> element_names;  // that the step uses
  bool forced = false;                     // its tasks run whatever the cache has
  bool names_key = false;                  // whether it uses {key}
  std::vector<StepIndex> needs;
  std::vector<std::pair<std::string, Words>> params;  // the flow's, then the step's own
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Condition> when;
  Words asked_metrics;     // that conditions of others name
  bool protect = false;    // its outputs are made read-only, and not written over
  bool temp = false;       // its outputs go when all tasks that read them are done
  bool stops_run = false;  // nothing more starts after a task of it failed for good
  std::string depfile;  // which its tasks write: what they read; with {placeholders}; empty: none
  Resources resources;  // of the first attempt, as is the time limit
  machine::DeviceSelection selection;
  Duration timeout{};                  // 0: none
  std::vector<ScaledAmount> scaled{};  // what later attempts ask for, where that differs
  Words automatic{};                   // where amounts that say auto come from, a sentence each
  bool names_attempt = false;          // whether its command uses {attempt}
  Words notes{};                       // what its writer should know, a sentence each
  bool enforce = false;                // the step runs only where its limits are enforced
  exec::GpuMemOver gpu_mem_over = exec::GpuMemOver::warn;
  int retries = 0;
  std::int64_t priority = 0;
  std::vector<StepIndex> after;  // all steps that it waits for, ascending, each once
  int line = 0, run_line = 0, resources_line = 0, when_line = 0, key_line = 0, depfile_line = 0;
};

struct Flow {
  std::string name, file;
  std::vector<Step> steps;
  std::vector<std::string> clusters = {};  // where it runs, the main one first; empty: this machine
  exec::Labels labels = {};                // of its runs
  std::vector<exec::Notify> notify = {};
  Words targets = {};  // "map", "map/A"; empty: all
  bool only = false;   // the targets alone: what they need is there, and nobody makes it
  std::int64_t allow_failures = 0;  // tasks that may fail in a run that is done
  exec::Command on_end = {};        // runs when a run of the flow has ended; no words: nothing does
  bool keyed = true;  // tasks are called by keys; by numbers in runs of an older Berth
};

/// What is said of a flow beside its file.
struct FlowOptions {
  Words shell{};  // of the commands of steps that name none; empty: the strict one
  std::vector<std::pair<std::string, Words>> set{};  // values of parameters: "lr", "train.lr"
  Words targets{};                // steps and tasks; only they and what they need run; empty: all
  bool only = false;              // the targets alone, which find what they need where it was put
  Words force{};                  // steps whose tasks run also where the cache has their results
  std::vector<Advised> advice{};  // for amounts that say auto
  friend bool operator==(const FlowOptions&, const FlowOptions&) = default;
};

/// The text of a file that a flow takes steps from, by its path beside the flow's own, which is
/// without "." and "x/..", or absolute. Errors: as the file system says.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// Reads the text of a file named `file`; without `read` there are no others.
Result<Flow> read_flow(std::string_view text, const std::string& file,
                       const FlowOptions& options = {}, const ReadFile& read = {});

/// The caller's answers about files and environment. Paths are relative to the flow's folder, or
/// absolute.
struct World {
  std::function<bool(const std::string& path)> exists;
  /// The matching paths, sorted bytewise, as fileset::glob() returns them.
  std::function<Result<Words>(const std::string& pattern)> glob;
  std::function<std::optional<std::string>(const std::string& name)> variable;  // environment
  /// The text of a table. Errors: as the file system says.
  std::function<Result<std::string>(const std::string& path)> read = {};
  /// Whether the `when` of a task held when an earlier runner evaluated it; nullopt, or no
  /// function: it was not evaluated.
  std::function<std::optional<bool>(const std::string& task)> held = {};
  /// What a file holds that a task wrote, of at most kMostJsonBytes. No function: nobody asks.
  std::function<Result<std::string>(const fileset::Entry& file)> content = {};
};

/// What a task told of itself: names, and the last value of each.
using Metrics = std::vector<std::pair<std::string, double>>;

struct TaskInput {
  std::string name{};      // the name of the input or variable
  std::string place{};     // the path in the task's directory
  std::string world{};     // the source path or URL; empty: a step wrote it, `content` has it
  TaskIndex producer{-1};  // the task that wrote it; below 0: none
  fileset::Fileset content{};
};

struct TaskOutput {
  std::string name;
  std::string path;  // in the task's directory, and in the flow's folder
  bool directory = false;
  bool protect = false;
  std::string url = {};  // of S3, where it goes instead of the flow's folder; empty: it does not
};

/// One task in full, except for what its step says of all its tasks.
struct TaskSpec {
  std::string name{};   // "split", "count/A"
  Words command{};      // the words of the process; with a shell, its words and the script
  std::string image{};  // the id of its container's image, or its name; empty: none
  bool sandbox = false;
  Words shown{};             // paths beside its own that it may read
  bool params_file = false;  // whether it needs kParamsFile, which holds params
  std::string script{};      // kScriptFile, where there is one, and then
  std::string task_file{};   // kTaskFile
  std::vector<std::pair<std::string, std::string>>
      params{};  // with variables; lists are joined by blanks
  std::vector<std::pair<std::string, std::string>> environment{};
  std::vector<TaskInput> inputs{};  // sorted by `place`, which are distinct and not nested
  std::vector<TaskOutput> outputs{};
  std::string depfile{};  // in the task's directory; empty: none
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
  std::string name(TaskIndex task) const;  // "split", "count/A"; "count/0" where keys repeat
  Words output_paths(TaskIndex task) const;
  std::optional<TaskIndex> find(std::string_view name) const;
  /// Whether the task is a target of the flow, or a target needs it and it may run for that. Others
  /// are never ready, and count for nothing.
  bool wanted(TaskIndex task) const;
  /// The task that writes a file, as an output or in one, and the digest of its content once the
  /// task is finished (nullopt, too, if it wrote no such file). nullopt: none that is known.
  struct Writer {
    TaskIndex task;
    std::optional<Digest> digest;
  };
  std::optional<Writer> writer_of(const std::string& path) const;
  /// Whether the tasks of a step start only when all of `other` are done, by what it names or by
  /// what these name.
  bool waits_for(StepIndex step, StepIndex other) const;
  /// Whether anybody reads the outputs of a task that is taken.
  bool is_read(TaskIndex task) const;

  /// Returns each task once, when everything that it waits for is finished. `skipped` are tasks
  /// whose `when` does not hold, or of which an input has no file because the tasks that write it
  /// were skipped. Errors: as finish().
  struct Ready {
    std::vector<TaskIndex> run, skipped;
    Words because;  // of `skipped`, a sentence each, with the values that decided
    /// Where the targets alone run, tasks that they need: they are finished with what lies where
    /// they put their outputs.
    std::vector<TaskIndex> taken;
  };
  Result<Ready> take_ready();

  /// One task in full, which was ready; without an attempt {attempt} stays in its command, as it
  /// does in what the task depends on. Errors: invalid if a pattern of its inputs matches nothing,
  /// or its `when` cannot be decided.
  Result<TaskSpec> spec(TaskIndex task, std::optional<std::int64_t> attempt = {}) const;

  /// Reports a finished task with its outputs in the order of Step::out. A resume goes through the
  /// same loop and finishes the tasks that are recorded as finished: their names are the same,
  /// their numbers may differ. Errors: invalid if a step that unfolds now is wrong (two writers of
  /// one output, say); then the flow has failed.
  Status finish(TaskIndex task, std::vector<fileset::Fileset> outputs, Metrics metrics = {});

  /// Reports that a finished task has been carried out again, before tasks that read it are ready.
  /// Errors: invalid, if it wrote other files into a directory than before.
  Status replace(TaskIndex task, std::vector<fileset::Fileset> outputs);

  /// The finished tasks of temporary outputs all of whose readers are settled: each once, in the
  /// order in which that came about. A reader is a task that takes an output, or whose step waits
  /// for all of the task's.
  std::vector<TaskIndex> take_released();

  /// Whether every step is unfolded and all its tasks are finished or skipped.
  bool done() const;

  /// What its writer should know of the steps that were unfolded so far, a sentence each: keys that
  /// repeat.
  const Words& notes() const;

 private:
  class Impl;
  explicit Graph(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Everything that a task depends on, one item a line: command words, image, declared environment,
/// parameters, inputs with their digests (in the order of spec.inputs), declared outputs; never
/// resources. The task's digest is the SHA-256 of this text.
std::string record(const TaskSpec& spec, std::span<const Digest> inputs);
/// A record with the files that the task was found to read, by its depfile, in place of those that
/// it had: their paths, and the digests of what they hold.
using Found = std::pair<std::string, Digest>;
std::string record_with(std::string_view record, std::span<const Found> found);

/// What a record says of the task's command, parameters, environment and outputs (paths; a
/// directory's ends in
/// '/'). Errors: corrupt if record() did not write it.
struct RecordedTask {
  Words command;
  std::vector<std::pair<std::string, std::string>> params, environment;
  Words outputs;
};
Result<RecordedTask> read_record(std::string_view text);

/// One difference between two records: "input data/a.txt changed", "parameter lr: 0.1 -> 0.2".
struct Change {
  // "command", "shell", "script", "image", "sandbox", "environment", "parameter", "input", "output"
  // or "dependency", which is a file that a depfile named; "depfile" has no name either
  std::string what;
  std::string name;  // its name; empty for the first four
  std::string before, after;
  bool is_new = false, is_gone = false;
};
/// Errors: corrupt if record() did not write it.
Result<std::vector<Change>> changes(std::string_view before, std::string_view after);
std::string to_string(const Change& change);

}  // namespace berth::flow
