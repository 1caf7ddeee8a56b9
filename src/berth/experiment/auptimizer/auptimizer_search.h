// The proposer and the parameters of an Auptimizer document, as a search. Pure.
#pragma once

#include "berth/base/document.h"
#include "berth/experiment/auptimizer/auptimizer.h"

namespace berth::experiment {

/// The number under `key`, or `otherwise` where it is absent. Errors: invalid.
Result<std::int64_t> integer_or(const Field& map, std::string_view key, std::int64_t otherwise,
                                std::int64_t least);
Result<double> number_or(const Field& map, std::string_view key, double otherwise);

/// Reads the proposer as the nearest of Berth's search methods. Errors: invalid.
Status read_proposer(const Field& root, AuptimizerExperiment& experiment);
/// Reads parameter_config, after read_proposer(). Errors: invalid.
Status read_parameters(const Field& root, AuptimizerExperiment& experiment);

}  // namespace berth::experiment
