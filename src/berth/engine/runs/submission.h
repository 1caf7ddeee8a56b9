// How a file or a command becomes a run, for every client: a RunRequest is read into a Submission,
// which is checked and then recorded as a run. The request overrides what the file says.
//
// Errors of the file have its name, line and key; errors of the request begin with the name of the
// field.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "berth/experiment/program.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/state/clusters.h"
#include "berth/run/state/context.h"

namespace berth::engine {

/// What a request says about the choice of devices; the rest is as in the file.
struct DeviceOverrides {
  std::vector<int> slot_sizes = {};
  std::optional<std::int64_t> memory_min = {};
  std::optional<placement::PolicyKind> policy = {};
  std::optional<placement::Objective> objective = {};
  std::vector<std::string> required = {};
  bool operator==(const DeviceOverrides&) const = default;
};

/// What a client asks for. A field that is not set leaves what the file says, or the default.
struct RunRequest {
  std::string file = {};  ///< An experiment, a flow, or an Auptimizer document.
  /// The content of `file`, which is then only a name in errors.
  std::optional<std::string> text = {};
  std::vector<std::string> command = {};  ///< Instead of a file.
  std::string directory = {};             ///< Of a command or a text; "": the working directory.
  std::string name = {};                  ///< Name of the run, without its number.
  exec::Labels labels = {};
  std::vector<exec::Notify> notify = {};  ///< In addition to the targets in the file.
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< Of a command's task.

  /// Amounts of each task by resource, which replace those of the file; 0 of `gpu` asks for none.
  std::vector<std::pair<std::string, std::int64_t>> resources = {};
  DeviceOverrides devices = {};
  std::optional<bool> enforce = {};
  std::optional<exec::GpuMemOver> gpu_mem_over = {};

  std::optional<Duration> timeout = {};  ///< Of each attempt; more than 0.
  std::optional<Duration> retain = {};
  std::optional<std::int64_t> allow_failures = {};
  int retries = 0;
  std::int64_t priority = 0;
  std::int64_t parallel = 0;

  std::string input = {};  ///< Standard input of each task: a file, or "-" for that of the runner.
  std::vector<std::string> warm_start = {};  ///< Earlier runs whose trials the search begins with.

  flow::FlowOptions flow = {};  ///< Of a flow: parameters, targets, forced steps.
  bool overwrite = false;       ///< Of a flow: replace outputs that are protected or were edited.
  std::optional<run::CacheMode> cache = {};  ///< Of a flow.
  std::string image = {};                    ///< Of a flow: the image of all containers.

  std::vector<std::string> clusters = {};  ///< The first one is preferred.
  bool send_large = false;  ///< Send the experiment's directory although it is large.
  /// The tasks will run on a Cluster of the program: nothing is checked against this machine.
  bool runs_elsewhere = false;

  /// Comes before the names of fields in errors: "--" on a command line.
  std::string option_prefix = {};
};

/// What a request and its file say together.
struct Submission {
  std::variant<experiment::Program, run::FlowProgram> program;
  std::string directory;  ///< Where the tasks start; absolute.
  std::string file;       ///< As in the request.
  run::ClusterChoice clusters = {};
  bool clusters_are_from_file = true;
  bool runs_elsewhere = false;
  std::vector<std::string> warm_start = {};
  std::string option_prefix = {};                ///< As in the request.
  std::vector<std::string> missing_images = {};  ///< Images that are not on this machine.
  std::vector<std::string> notes = {};           ///< What the reader has to say to the user.

  const run::FlowProgram* flow() const { return std::get_if<run::FlowProgram>(&program); }
  const experiment::Program* trials() const { return std::get_if<experiment::Program>(&program); }
  bool runs_here() const { return clusters.names.empty() && !runs_elsewhere; }
};

/// Receives a sentence for the user.
using Note = std::function<void(const std::string& note)>;

/// Reads the file and applies the request. Errors: not_found; invalid, also if the request does not
/// fit the kind of file.
Result<Submission> read_submission(os::Env& env, const RunRequest& request);

/// Checks what can be known before anything starts, and completes the submission. What remote
/// machines have is known when they answer. Errors: as run::check_program() and run::check_flow();
/// invalid, if `warm_start` does not fit.
Status check(run::Context& context, Submission& submission, const Note& note);

/// Records the run, after it has downloaded missing images. The run then waits for a runner.
/// Errors: those of the store; of the container engine; invalid, if an output is protected.
Result<store::RunRecord> submit(run::Context& context, Submission& submission, const Note& note);

}  // namespace berth::engine
