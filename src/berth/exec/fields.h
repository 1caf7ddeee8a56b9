// What files of every kind say of a process in the same words: its command, environment, resources
// and limits. Failure: invalid, with file, line and key.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "berth/base/document.h"
#include "berth/exec/command.h"
#include "berth/exec/messages.h"
#include "berth/resource/resources.h"

namespace berth::exec {

/// Text for a process, which ends it at a NUL byte: refused where it holds one.
Result<std::string> process_text(const Field& field);
/// At most 100 years: added to any clock it still fits.
Result<Duration> duration_of(const Field& field);
/// Of what takes too long: more than 0.
Result<Duration> time_limit_of(const Field& field);
/// warn or kill.
Result<GpuMemOver> gpu_mem_over_named(std::string_view text);
/// As `gpu_mem_over` of the map says; unchanged where it does not.
Status read_gpu_mem_over(const Field& map, GpuMemOver& over);
Result<std::int64_t> integer_within(const Field& field, std::int64_t least, std::int64_t most);

/// Of clusters: one, or a list of them.
Result<std::vector<std::string>> read_names(const Field& field);
/// A text, or a list of words.
Result<Command> read_command(const Field& field);
/// The words of `shell`: bash (the strict one), sh, or words that a text is added to; of
/// `otherwise` where the key is not there.
Result<std::vector<std::string>> read_shell(const Field& map,
                                            const std::vector<std::string>& otherwise);
/// `enforce`: required (true) or advisory, of a task's limits where a machine cannot hold it to
/// them; `otherwise` where the key is not there.
Result<bool> read_enforce(const Field& map, bool otherwise);
Status read_environment(const Field& field, Environment& environment);
/// A map of amounts; beside them which devices are accepted: gpu_slot_sizes: [31, 99], gpu_mem_min:
/// 30G, gpu_policy, gpu_objective, gpu_require: 0,2-5 or a list. Whether it asks for any amount,
/// if it is 0.
Result<bool> read_resources(const Field& field, Resources& resources,
                            machine::DeviceSelection& selection);

}  // namespace berth::exec
