// An Auptimizer document, with its environment file, as a program of Berth's.
#pragma once

#include <string>
#include <string_view>

#include "berth/experiment/program.h"
#include "berth/os/env.h"

namespace berth::cli {

/// Tells on standard error what is done otherwise than there. `directory`: the document's folder;
/// becomes where its script runs. `elsewhere`: on machines that the person names.
struct FromAuptimizer {
  experiment::Program program;
  std::string cluster;  // as of AuptimizerExperiment
  bool machines;        // it knows them: an environment file names them, or they need no names
};
Result<FromAuptimizer> from_auptimizer(os::Env& env, std::string_view text, const std::string& file,
                                       std::string& directory, bool elsewhere);

}  // namespace berth::cli
