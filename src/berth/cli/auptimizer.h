// An Auptimizer document and its environment file, read as a program of Berth.
#pragma once

#include <string>
#include <string_view>

#include "berth/experiment/auptimizer.h"
#include "berth/os/env.h"

namespace berth::cli {

/// Reads a document, and prints on standard error what Berth does in another way than Auptimizer.
/// `directory` is the document's folder, and becomes the one that the script runs in. `elsewhere`:
/// the trials run on clusters that the command line names.
Result<experiment::AuptimizerExperiment> from_auptimizer(os::Env& env, std::string_view text,
                                                         const std::string& file,
                                                         std::string& directory, bool elsewhere);

}  // namespace berth::cli
