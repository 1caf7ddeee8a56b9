// An Auptimizer document, with its environment file, as a program of Berth's.
#pragma once

#include <string>
#include <string_view>

#include "berth/experiment/program.h"
#include "berth/os/env.h"

namespace berth::cli {

/// Tells on standard error what is done otherwise than there. `directory`: the document's folder;
/// becomes where its script runs.
Result<experiment::Program> auptimizer_program(os::Env& env, std::string_view text,
                                               const std::string& file, std::string& directory);

}  // namespace berth::cli
