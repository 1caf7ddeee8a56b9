// How a run ended, and the exit code that says so. A run that is open has not ended.
//
// Threads: one. Failure: the functions that read the store return its errors.
#pragma once

#include <cstdint>
#include <optional>

#include "berth/base/names.h"
#include "berth/store/store.h"

namespace berth::run {

/// What stopped a run: Ctrl-C at its runner, or a request from another process (`berth stop`).
enum class StoppedBy : std::uint8_t { interrupt, request };
inline constexpr auto kStoppedByNames =
    names<StoppedBy>({{StoppedBy::interrupt, "interrupt"}, {StoppedBy::request, "request"}});

/// nullopt: no one stopped the run, or an earlier Berth did not record it.
std::optional<StoppedBy> stopped_by(const store::RunRecord& run);

/// The exit code of `berth run`, `resume`, `retry` and `wait` for a run that ended: 0 when it is
/// done, 1 when it failed, 3 when it was stopped, 130 when Ctrl-C stopped it. A command that failed
/// has its own code: 128 + signal for a signal, 124 at its time limit. 3 for an open run.
Result<int> exit_code_of(store::Store& store, const store::RunRecord& run);

}  // namespace berth::run
