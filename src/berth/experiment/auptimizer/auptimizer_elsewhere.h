// The part of read_auptimizer() that is about other machines.
#pragma once

#include <span>
#include <string_view>

#include "berth/base/document.h"
#include "berth/experiment/auptimizer/auptimizer.h"

namespace berth::experiment {

/// The keys of resource_args that are about the machines of that resource.
std::span<const std::string_view> elsewhere_arguments(std::string_view resource);

/// Reads the resource_args of the resources node, aws and slurm into the experiment's settings.
Status read_elsewhere(const Field& root, AuptimizerExperiment& experiment);

}  // namespace berth::experiment
