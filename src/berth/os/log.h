// The log tells event by event what Berth does, for whoever must find out later. It is written to
// the file that BERTH_LOG names ("-": standard error), one JSON object a line; where the variable
// is not set, nothing is written.
//
// Threads: any. Failure: a line that cannot be written is lost; that never stops a run.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/os/env.h"

namespace berth::os {

/// A field is a name and a value that is JSON already (`"text"`, `12`, `{…}`).
using LogField = std::pair<std::string_view, std::string>;

/// Opens the log that the environment asks for. Failure: denied or io, where it cannot be opened.
Status open_log(Env& env);
/// Whether a log is open.
bool logging();
/// Writes {"at":"2026-11-21T05:04:03.123Z","pid":12,"event":"reserved",…fields…}.
void log_event(Env& env, std::string_view event, const std::vector<LogField>& fields);

}  // namespace berth::os
