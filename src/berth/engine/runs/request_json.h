// A RunRequest as JSON, as the REST and C interfaces take it.
#pragma once

#include <string_view>

#include "berth/base/document.h"
#include "berth/engine/runs/submission.h"

namespace berth::engine {

/// Applies the options of a map to the request: {"parallel": 4, "set": {"lr": "0.1"}}. A list in
/// `set` gives a parameter several values. Keys that are not options are ignored. Errors: invalid,
/// with the key.
Status read_options(const Field& map, RunRequest& request);

/// Reads a whole request, a JSON object: {"command": [words]} with options next to it, or {"file":
/// the text or the object of an experiment or a flow, "options": {…}}. Both may have a
/// `directory`; `file_name` names the file in errors ("file"). Errors: invalid, with the key.
Result<RunRequest> read_request(std::string_view json);

}  // namespace berth::engine
