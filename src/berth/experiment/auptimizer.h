// Auptimizer's experiment.json, read as the experiment of Berth's that does the same. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/experiment/program.h"

namespace berth::experiment {

struct AuptimizerExperiment {
  Program program;
  std::string directory;           // its workingdir, from the file's folder
  std::vector<std::string> notes;  // what is done otherwise than there, a sentence each
};

/// Whether the text is such a document: it names a script, and nothing to run.
bool is_auptimizer(std::string_view text);

/// From the text of a file named `file`. What only its own tools need is passed over with a note.
/// invalid: what the trials need is missing or makes no sense; impossible: its trials run on
/// machines that Berth has no cluster for.
Result<AuptimizerExperiment> read_auptimizer(std::string_view text, const std::string& file);

/// What its environment file (.aup/env.ini) says of GPUs: the experiment, if it uses any, takes
/// these alone, and as many of its trials as a GPU is named times share it. invalid.
Status read_gpu_mapping(std::string_view text, const std::string& file,
                        AuptimizerExperiment& experiment);

}  // namespace berth::experiment
