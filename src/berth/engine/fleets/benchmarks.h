// The files that berth fit reads.
#pragma once

#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/measurements/measured.h"
#include "berth/os/env.h"

namespace berth::engine {

struct BenchmarkInput {
  std::vector<fleet::Measured> measured;  // one for each model and accelerator
  std::vector<std::string> notes;
};

/// Reads files of benchmark tools, and those in directories: of several files of one run in a
/// directory the best is taken, and a file that cannot be read is left out with its reason in the
/// notes. Errors: those of the files that are named; not_found: nothing to read.
Result<BenchmarkInput> read_benchmarks(os::Env& env, const std::vector<std::string>& paths);

/// Only what was measured of this model on this accelerator, where the files tell of such a one;
/// else all, under these names. "" asks for nothing. Errors: usage: the files tell of several, none
/// of which is called so.
Status choose_measured(std::vector<fleet::Measured>& all, const std::string& model,
                       const std::string& accelerator);

}  // namespace berth::engine
