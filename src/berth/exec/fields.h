// These functions read the fields that files of every kind (experiments, flows, clusters) use for a
// process: its command, environment, resources and limits. Failure: invalid; the message names the
// file, the line and the key.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/document.h"
#include "berth/exec/command.h"
#include "berth/exec/messages.h"
#include "berth/resource/resources.h"

namespace berth::exec {

/// Text that is given to a process. A text with a NUL byte is refused, for a process would see only
/// what stands before it.
Result<std::string> process_text(const Field& field);
/// A duration of at most 100 years, so that it can be added to any clock.
Result<Duration> duration_of(const Field& field);
/// A time limit: a duration of more than 0.
Result<Duration> time_limit_of(const Field& field);
/// The text is "warn" or "kill".
Result<GpuMemOver> gpu_mem_over_named(std::string_view text);
/// Reads the map's `gpu_mem_over` into `over`, which stays as it is where the key is missing.
Status read_gpu_mem_over(const Field& map, GpuMemOver& over);
/// An integer from `least` to `most`, both included.
Result<std::int64_t> integer_within(const Field& field, std::int64_t least, std::int64_t most);

/// The names of clusters: the field is one name or a list of names.
Result<std::vector<std::string>> read_names(const Field& field);
/// The field is a text or a list of words.
Result<Command> read_command(const Field& field);
/// The words of the map's `shell`: "bash" (the strict one), "sh", or a list of words to which the
/// text is added; `otherwise` where the key is missing.
Result<std::vector<std::string>> read_shell(const Field& map,
                                            const std::vector<std::string>& otherwise);
/// The map's `enforce`: "required" (true) or "advisory", for limits that a machine cannot enforce;
/// `otherwise` where the key is missing.
Result<bool> read_enforce(const Field& map, bool otherwise);
/// The map's `on_failure`: "stop" (true: nothing more starts after a task failed for good) or
/// "continue"; `otherwise` where the key is missing.
Result<bool> read_on_failure(const Field& map, bool otherwise);
/// The map's `allow_failures`: how many tasks may fail for good, true for any number; `otherwise`
/// where the key is missing.
Result<std::int64_t> read_allow_failures(const Field& map, std::int64_t otherwise);
/// The same from a text: "true" or a number. invalid: the text is neither.
Result<std::int64_t> allow_failures_of(std::string_view text);
/// Reads the map's `image`, `sandbox` and `network`; each stays as it is where its key is missing.
Status read_container(const Field& map, Container& container);
/// Reads a map of variables into `environment`, where they replace those of the same names.
Status read_environment(const Field& field, Environment& environment);
/// Reads one amount of a resource; nullopt: it is not asked for.
using AmountReader =
    std::function<Result<std::optional<std::int64_t>>(const std::string& resource, const Field&)>;
Result<std::optional<std::int64_t>> read_amount(const std::string& resource, const Field& field);
/// Reads a map of amounts into `resources`, and its keys that say which devices are accepted into
/// `selection`: gpu_slot_sizes: [31, 99], gpu_mem_min: 30G, gpu_policy, gpu_objective, gpu_require:
/// 0,2-5 or a list. Returns whether the map names any amount, even if that is 0.
Result<bool> read_resources(const Field& field, Resources& resources,
                            machine::DeviceSelection& selection,
                            const AmountReader& amount = read_amount);

}  // namespace berth::exec
