// Runs of flows: how one is submitted and kept, and the cache that all of them share.
//
// A flow is kept as it was written, with what the world answered when it was submitted (which
// files a pattern named, which variables were set), so that a resume finds the same tasks. What a
// task wrote is kept in the object store STATE/cache, and which objects that are in the store of
// runs, under the digest of all that went into the task. Failure: as each function says; a cache
// that is damaged or gone costs time, never a result.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/fileset/fileset.h"
#include "berth/flow/flow.h"
#include "berth/run/state/context.h"

namespace berth::run {

enum class CacheMode : std::uint8_t { off, read, write, on };
inline constexpr auto kCacheModeNames = names<CacheMode>({{CacheMode::off, "off"},
                                                          {CacheMode::read, "read"},
                                                          {CacheMode::write, "write"},
                                                          {CacheMode::on, "on"}});
constexpr std::optional<CacheMode> cache_mode(std::string_view name) {
  return kCacheModeNames.value(name);
}
constexpr bool reads(CacheMode mode) {
  return mode == CacheMode::read || mode == CacheMode::on;
}
constexpr bool writes(CacheMode mode) {
  return mode == CacheMode::write || mode == CacheMode::on;
}

/// An image of containers, as an engine knows it.
struct Image {
  std::string id;     // of its content
  std::string there;  // its name with its digest, under which other machines find the same one
};

/// What the world answered to each question.
struct Answers {
  std::map<std::string, bool> exists;
  std::map<std::string, flow::Words> glob;
  std::map<std::string, std::optional<std::string>> variable;
  std::map<std::string, std::string> table;  // its text
  std::map<std::string, Image> image;        // by the name in the file
};

/// What a flow's text says with these options: large flows take seconds to read.
struct FlowReading {
  flow::FlowOptions options;
  flow::Flow flow;
};

struct FlowProgram {
  std::string text, file;  // as it was read
  std::string name;        // of the run
  CacheMode cache = CacheMode::on;
  flow::FlowOptions options{};      // beside the file
  std::int64_t parallel = 0;        // tasks side by side at most; 0: as many as fit
  bool outlive = false;             // its tasks go on when their runner dies
  Duration retain{};                // for which its alloc is kept when it fails
  std::int64_t priority = 0;        // of the run, among those that wait for the machine
  std::optional<Duration> timeout;  // of each task, instead of its step's
  std::optional<int> retries;
  std::optional<std::int64_t> allow_failures;  // instead of what the file says
  std::optional<exec::GpuMemOver> gpu_mem_over;
  exec::Labels labels = {};  // of the run
  std::vector<exec::Notify> notify = {};
  std::string image;       // of every step, instead of what the file says; empty: that
  bool overwrite = false;  // what is protected, too
  bool keyed = true;       // tasks are called by their keys; false in runs of an older Berth
  std::map<std::string, std::string> parts;      // texts of the files that it takes steps from
  std::shared_ptr<const FlowReading> reading{};  // of this text and these parts; or none yet
  Answers answers;
};

std::string to_json_text(const FlowProgram& program);
/// corrupt: not what to_json_text() writes.
Result<FlowProgram> flow_program(std::string_view text);

/// Whether a file is a flow: an experiment has no steps.
bool is_flow(std::string_view text);

/// Fills `parts`, for a flow whose file lies in the directory. Errors: as flow::read_flow().
Status take_parts(os::Env& env, const std::string& directory, FlowProgram& program);

/// Of the files beside the flow's; answers that were given once are given again, and new ones kept
/// in `answers`, which outlives it.
flow::World world_of(os::Env& env, std::string directory, Answers& answers);

/// Whether a word stands in any of its files; where it does not, no key or value is it, either.
bool mentions(const FlowProgram& program, std::string_view word);

/// Reads it once for all that is asked of it: fills `reading`, when its text and its parts are
/// there and change no more. Errors: as flow::read_flow().
Status keep_reading(FlowProgram& program);

/// With the program's own options in it. Its text is read where no `reading` is of its options.
Result<flow::Flow> read_flow(const FlowProgram& program);

/// Checks what needs no record yet: inputs, places that steps fit, programs that are not there;
/// these two only of what runs `here`. Fills the answers. Returns what its writer should know, a
/// sentence each. not_found, invalid, impossible.
Result<flow::Words> check_flow(Context& context, FlowProgram& program, const std::string& directory,
                               bool here = true);
/// Submits it with the tasks that are known, durably.
Result<store::RunRecord> submit(Context& context, FlowProgram program,
                                const std::string& directory);

/// Lets the next runner of the run replace outputs that are protected or were edited.
Status allow_overwriting(Context& context, const store::RunRecord& record);

/// The flow of a run with the text that its file has now; nullopt where that is the one it was
/// submitted with, or the file is not there.
Result<std::optional<FlowProgram>> edited(os::Env& env, const store::RunRecord& record);
/// What the run is asked for if it takes the edited flow: that is as if it were submitted now.
/// invalid: as check_flow(), or a step is gone of which the run has a task.
Result<std::string> resubmitted(Context& context, const store::RunRecord& record,
                                FlowProgram edited);

// The cache.

Result<fileset::ObjectStore> open_cache(Context& context);

/// A task's outputs, in the order of its step's, as the store keeps them, with the metrics that it
/// told, if any.
std::string to_text(const std::vector<fileset::Fileset>& outputs,
                    const flow::Metrics& metrics = {});
/// corrupt: not what to_text() gives.
Result<std::vector<fileset::Fileset>> parse_outputs(std::string_view text);
flow::Metrics parse_metrics(std::string_view text);
/// Whether they have all of these names.
bool has_metrics(const flow::Metrics& metrics, const flow::Words& names);

/// Forgets the results that no run has used for so long and none that can go on refers to, and
/// removes the objects that nobody needs any more. What it freed.
struct Collected {
  std::int64_t results = 0;
  fileset::Usage objects;
};
Result<Collected> collect(Context& context, Duration unused_for);

}  // namespace berth::run
