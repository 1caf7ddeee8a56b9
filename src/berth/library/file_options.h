// FileOptions as a JSON object, for the C interface.
#pragma once

#include <string_view>

#include "berth/run.h"

namespace berth::library {

/// Reads an object whose keys are the fields of FileOptions: {"parallel": 4, "set": {"lr": "0.1"}}.
/// A list in `set` sets a parameter of several values. Errors: invalid, with the key.
Result<FileOptions> file_options(std::string_view json);

}  // namespace berth::library
