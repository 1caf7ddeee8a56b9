#include "berth/cli/auptimizer.h"

#include "berth/cli/table.h"
#include "berth/experiment/auptimizer.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLargestEnvironmentFile = 1U << 20;
constexpr const char* kEnvironmentFile = "/.aup/env.ini";

/// The one beside the document, else the person's. Whether it names machines.
Result<bool> read_environment_file(os::Env& env, const std::string& directory,
                                   experiment::AuptimizerExperiment& experiment) {
  for (const auto& place : {directory, env.variable("HOME").value_or("")}) {
    const std::string file = place + kEnvironmentFile;
    const auto text = env.read_file(file, kLargestEnvironmentFile);
    if (text && !experiment.cluster.empty())
      return experiment::read_machines(*text, file, experiment);
    if (text) {
      BERTH_TRY(experiment::read_gpu_mapping(*text, file, experiment));
      return false;
    }
    if (text.error().kind != ErrorKind::not_found) return std::unexpected(text.error());
  }
  return false;
}

}  // namespace

Result<FromAuptimizer> from_auptimizer(os::Env& env, std::string_view text, const std::string& file,
                                       std::string& directory) {
  BERTH_ASSIGN(auto experiment, experiment::read_auptimizer(text, file));
  BERTH_ASSIGN(const bool named, read_environment_file(env, directory, experiment));
  const std::string& work = experiment.directory;
  if (!work.empty()) {
    const auto path = env.real_path(work.front() == '/' ? work : directory + "/" + work);
    if (!path) return std::unexpected(within(file + ": workingdir", path.error()));
    directory = *path;
  }
  for (const auto& note : experiment.notes) print_error(fmt::format("{}: {}\n", file, note));
  return FromAuptimizer{std::move(experiment.program), experiment.cluster,
                        named || experiment.cluster.starts_with("slurm:")};
}

}  // namespace berth::cli
