// One task of a flow, from what it takes in to what it leaves: plain data and what works on it.
//
// Failure: as each function says; full and busy may pass (is_resource_shortage).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/run/flows/delivery.h"
#include "berth/run/flows/flow_run.h"
#include "berth/store/store.h"

namespace berth::run {

/// What all tasks of a run have in common.
struct FlowRun {
  Context& context;
  os::Env& env;
  const std::string directory;  ///< The run's own.
  const store::RunRecord record;
  FlowProgram program;
  fileset::ObjectStore cache;
  PlacedOutputs placed{cache.directory()};
};

/// A task that was not in the cache: all it takes to run it.
struct PreparedTask {
  flow::TaskIndex index;
  flow::TaskSpec spec{};
  std::vector<fileset::Fileset> inputs{};  ///< As spec.inputs.
  fileset::Hold hold{};                    ///< Of these.
  std::string key{};                       ///< Of its result; "": it has none.
  std::optional<Error> error{};            ///< Why it cannot be started.
  Token token{};                           ///< Of the last attempt; 0 before the first.
  bool adopted = false;                    ///< An earlier runner started it: inputs are unknown.
  std::vector<fileset::Fileset> outputs{};
  flow::Metrics metrics{};  ///< That it told; with the outputs.
  std::string declared{};   ///< With a depfile: what it depends on without what that names.
  Wall launched{};          ///< The last attempt; 0: by an earlier runner.
  std::vector<store::Change> learned{};  ///< From its depfile, to be recorded with its result.
};

/// What passes by itself, rather than being wrong with this task.
inline bool is_resource_shortage(const Error& error) {
  return error.kind == ErrorKind::full || error.kind == ErrorKind::busy;
}

/// Removes the directories of attempts that were lost or failed.
Status sweep_directories(FlowRun& run, std::span<const store::TaskRecord> tasks);
/// Makes the folders that outputs go to, and the file of parameters, in a directory with the
/// inputs.
Status prepare_outputs(os::Env& env, const flow::TaskSpec& spec, const std::string& directory);
/// What the worker is told to start.
exec::Launch launch_of(const FlowRun& run, const flow::Step& step, const PreparedTask& task,
                       const store::TaskRecord& record, std::int64_t attempt);

// A result is kept under the digest of all that went into its task.

/// All that went into the task, as text.
std::string depends_of(const PreparedTask& task);
/// A result that other runs must not find (not `shared`) has a key that only this one knows.
std::string result_key(const FlowRun& run, const std::string& depends, bool shared);
/// Gives the task the key of its result.
store::TaskKeyed assign_key(const FlowRun& run, PreparedTask& task, TaskNumber number,
                            const std::string& depends);
/// What a task of the step wrote, held; nullopt: it is not there, or not whole any more, or without
/// the metrics that others ask for. interrupted: a stop came while it was read.
Result<std::optional<Delivery>> find_result(FlowRun& run, const std::string& key,
                                            const flow::Step& step, std::string* origin);
/// Puts the outputs of a task that is done to it, and its result, if it has a key, to `changes`.
void keep_result(const FlowRun& run, PreparedTask& task, const std::string& label,
                 std::vector<fileset::Fileset> outputs, std::vector<store::Change>& changes);

}  // namespace berth::run
