// The formats of the keys that files of several kinds have for a process, as fields.h reads them.
#pragma once

#include <array>
#include <limits>
#include <string_view>

#include "berth/base/format.h"
#include "berth/exec/messages.h"
#include "berth/placement/placement.h"

namespace berth::exec {

namespace f = format;

inline constexpr std::array<std::string_view, 2> kEnforceNames{"advisory", "required"};
inline constexpr std::array<std::string_view, 2> kOnFailureNames{"continue", "stop"};
inline constexpr std::array<std::string_view, 2> kShellNames{"bash", "sh"};
inline constexpr std::int64_t kMostRetries = 1000, kMostPriority = 1000;
inline constexpr std::int64_t kMostAllowedFailures = 1'000'000;
/// allow_failures: true.
inline constexpr std::int64_t kAnyFailures = std::numeric_limits<std::int64_t>::max();

/// A command: a text, or the words of one that meets no shell.
inline constexpr ValueFormat kCommandFormat = f::either(f::kTextOrTexts);
/// One name or a list of names.
inline constexpr ValueFormat kNamesFormat = f::either(f::kTextOrTexts);
inline constexpr ValueFormat kShells[] = {f::one_of(kShellNames), f::list_of(f::kText, 1)};
inline constexpr ValueFormat kShellFormat = f::either(kShells);
inline constexpr ValueFormat kAllowedFailures[] = {f::whole(0, kMostAllowedFailures), f::flag()};
inline constexpr ValueFormat kAllowFailuresFormat = f::either(kAllowedFailures);
inline constexpr ValueFormat kVariablesFormat = f::entries_of(f::kText);
inline constexpr ValueFormat kSandboxes[] = {f::flag(), f::list_of(f::kText)};
inline constexpr ValueFormat kSandboxFormat = f::either(kSandboxes);
/// warn or kill; the first of the names stands for "not said".
inline constexpr ValueFormat kGpuMemOverFormat =
    f::one_of(std::span(kGpuMemOverNames.all()).subspan(1));

inline constexpr ValueFormat kSlots = f::whole(1, 10'000);
/// The keys of `resources`, whose amounts are `of`; any other is an amount of one's own name.
template <const ValueFormat& of>
inline constexpr KeyFormat kResourceKeys[] = {
    {"cpu", of, "cores, such as 0.5; 0 for none", "1, unless something else is requested"},
    {"mem", of, "memory", "not limited"},
    {"disk", of, "bytes on the volume of the state directory", "not counted"},
    {"gpu", of, "GPUs, those that belong together most", "none"},
    {"gpu_mem", of, "a part of a GPU's memory", "whole GPUs"},
    {"gpu_slots", of, "a part of a GPU's throughput, in units of 10 TFLOP/s", "whole GPUs"},
    {"gpu_mem_min", f::amount(), "only GPUs with at least this much memory in total", "any"},
    {"gpu_slot_sizes", f::list_of(kSlots), "only GPUs with this number of slots", "any"},
    {"gpu_require", kNamesFormat, "GPUs that must be among them: indices, ranges, UUIDs", ""},
    {"gpu_policy", f::one_of(placement::kPolicyNames.all()), "how several GPUs are chosen",
     "packed"},
    {"gpu_objective", f::one_of(placement::kObjectiveNames.all()),
     "the objective that ranks sets of GPUs", "sum"},
};

inline constexpr ValueFormat kAmount = f::amount();
inline constexpr MapFormat kResources{
    "resources", "Resources of a task, and which GPUs; other names are custom resources.",
    kResourceKeys<kAmount>, &kAmount};

}  // namespace berth::exec
