// What Berth does, event by event, for whoever must find out later: one JSON object a line, into
// the file that BERTH_LOG names ("-": standard error). Nothing is written when it is unset.
//
// Threads: any. Failure: a log that cannot be written never stops a run; the line is lost.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/os/env.h"

namespace berth::os {

/// One field: a name, and a value that is JSON already (`"text"`, `12`, `{…}`).
using LogField = std::pair<std::string_view, std::string>;

/// Opens the log that the environment asks for. denied, io: it cannot be opened.
Status open_log(Env& env);
bool logging();
/// {"at":"2026-11-21T05:04:03.123Z","pid":12,"event":"reserved",…fields…}
void log_event(Env& env, std::string_view event, const std::vector<LogField>& fields);

}  // namespace berth::os
