// Reads Auptimizer's experiment.json as the equivalent experiment of Berth. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/experiment/program.h"

namespace berth::experiment {

struct AuptimizerExperiment {
  Program program;
  std::string script;              // as written in the program's command
  std::string directory;           // its workingdir, relative to the file's folder
  std::vector<std::string> notes;  // differences to Auptimizer, a sentence each
  std::string cluster = {};  // the resource node, aws or slurm: its entry in a file of clusters
                             // (remote/clusters.h), named as the resource; else ""
};

/// The value of a key of an environment file, as text; "" where it is absent.
std::string environment_value(std::string_view text, std::string_view key);

/// Whether the text is such a document: it has a script, and no key `run`.
bool is_auptimizer(std::string_view text);

/// Reads the text of a file named `file`. Keys that only Auptimizer's tools need are ignored with a
/// note. Errors: invalid if something that the trials need is missing or makes no sense.
Result<AuptimizerExperiment> read_auptimizer(std::string_view text, const std::string& file);

/// Reads the GPUs of the environment file (.aup/env.ini): an experiment that uses GPUs takes only
/// these, and a GPU that is named n times is shared by n trials. Errors: invalid.
Status read_gpu_mapping(std::string_view text, const std::string& file,
                        AuptimizerExperiment& experiment);

/// Reads the machines of the resources node and aws into the cluster: `node_mapping` or
/// `aws_mapping` of the environment file, each "user@host[:port] [keyfile]", or an instance's id
/// instead of the host. false: the file names none. Errors: invalid.
Result<bool> read_machines(std::string_view text, const std::string& file,
                           AuptimizerExperiment& experiment);

}  // namespace berth::experiment
