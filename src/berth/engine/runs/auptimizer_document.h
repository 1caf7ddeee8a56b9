// An Auptimizer document and its environment file, read as a program of Berth.
#pragma once

#include <string>
#include <string_view>

#include "berth/experiment/auptimizer/auptimizer.h"
#include "berth/os/env.h"

namespace berth::engine {

/// Reads a document; its notes say what Berth does differently. `directory` is the document's
/// directory, and becomes the one in which the script runs. `has_clusters`: the client chose
/// clusters for the trials.
Result<experiment::AuptimizerExperiment> read_auptimizer_document(os::Env& env,
                                                                  std::string_view text,
                                                                  const std::string& file,
                                                                  std::string& directory,
                                                                  bool has_clusters);

}  // namespace berth::engine
