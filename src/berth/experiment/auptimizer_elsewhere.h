// The part of read_auptimizer() that is about other machines.
#pragma once

#include <string>

#include "berth/base/document.h"
#include "berth/experiment/auptimizer.h"

namespace berth::experiment {

/// Reads the resource_args of the resources node, aws and slurm into the experiment's cluster.
Status read_elsewhere(const Field& root, const std::string& resource,
                      AuptimizerExperiment& experiment);

}  // namespace berth::experiment
