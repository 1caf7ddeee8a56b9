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
  std::string resource = {};       // cpu, gpu, passive, node, aws or slurm
  // Of node, aws and slurm: what every entry of its own file of clusters (remote/clusters.h) says,
  // and what one of instances says beside that; else "".
  std::string settings = {}, instance_settings = {};
  // That file, and the names of its clusters, the first one named as the resource.
  std::string clusters = {};
  std::vector<std::string> cluster_names = {};
};

/// The value of a key of an environment file, as text; "" where it is absent. It goes on in lines
/// that begin with a blank.
std::string environment_value(std::string_view text, std::string_view key);

/// Whether the text is such a document: it has a script, or parameter_config, and no key `run` or
/// `steps`.
bool is_auptimizer(std::string_view text);

/// Reads the text of a file named `file`. Keys that only Auptimizer's tools need are ignored with a
/// note. Errors: invalid if something that the trials need is missing or makes no sense.
Result<AuptimizerExperiment> read_auptimizer(std::string_view text, const std::string& file);

/// Reads the GPUs of the environment file (.aup/env.ini): an experiment that uses GPUs takes only
/// these, and a GPU that is named n times is shared by n trials. Errors: invalid.
Status read_gpu_mapping(std::string_view text, const std::string& file,
                        AuptimizerExperiment& experiment);

/// Reads the machines of the resources node and aws into clusters: `node_mapping` or `aws_mapping`
/// of the environment file, each "user@host[:port] [keyfile]", or an instance's id instead of the
/// host. Hosts are one cluster, and instances one for each user, key and port. false: the file
/// names none. Errors: invalid.
Result<bool> read_machines(std::string_view text, const std::string& file,
                           AuptimizerExperiment& experiment);

}  // namespace berth::experiment
