// Auptimizer's experiment.json, read as the experiment of Berth's that does the same. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/experiment/program.h"

namespace berth::experiment {

struct AuptimizerExperiment {
  Program program;
  std::string script;              // as it stands in the program's command
  std::string directory;           // its workingdir, from the file's folder
  std::vector<std::string> notes;  // what is done otherwise than there, a sentence each
  std::string cluster = {};  // the resource node, aws or slurm: its entry in a file of clusters
                             // (remote/clusters.h), named as the resource; else ""
};

/// The value of a key of an environment file, as text; "" where it is absent.
std::string environment_value(std::string_view text, std::string_view key);

/// Whether the text is such a document: it names a script, and nothing to run.
bool is_auptimizer(std::string_view text);

/// From the text of a file named `file`. What only its own tools need is passed over with a note.
/// invalid: what the trials need is missing or makes no sense.
Result<AuptimizerExperiment> read_auptimizer(std::string_view text, const std::string& file);

/// What its environment file (.aup/env.ini) says of GPUs: the experiment, if it uses any, takes
/// these alone, and as many of its trials as a GPU is named times share it. invalid.
Status read_gpu_mapping(std::string_view text, const std::string& file,
                        AuptimizerExperiment& experiment);

/// The machines of node and aws, for which the cluster lacks them: `node_mapping`, or
/// `aws_mapping`, of the environment file, each "user@host[:port] [keyfile]", or with an
/// instance's id for the host. false: it names none. invalid.
Result<bool> read_machines(std::string_view text, const std::string& file,
                           AuptimizerExperiment& experiment);

}  // namespace berth::experiment
