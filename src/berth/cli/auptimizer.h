// An Auptimizer document and its environment file, read as a program of Berth.
#pragma once

#include <string>
#include <string_view>

#include "berth/experiment/program.h"
#include "berth/os/env.h"

namespace berth::cli {

struct FromAuptimizer {
  experiment::Program program;
  std::string cluster;  ///< As in AuptimizerExperiment.
  bool machines;        ///< The cluster's machines are known: a file names them, or needs not to.
};
/// Reads a document, and prints on standard error what Berth does in another way than Auptimizer.
/// `directory` is the document's folder, and becomes the one that the script runs in. `elsewhere`:
/// the trials run on clusters that the command line names.
Result<FromAuptimizer> from_auptimizer(os::Env& env, std::string_view text, const std::string& file,
                                       std::string& directory, bool elsewhere);

}  // namespace berth::cli
