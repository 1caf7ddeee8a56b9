#include "berth/cli/auptimizer.h"
#include "berth/cli/print.h"

#include "berth/base/text.h"
#include "berth/experiment/auptimizer.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLargestEnvironmentFile = 1U << 20;
constexpr const char* kEnvironmentFile = "/.aup/env.ini";

/// Reads the environment file beside the document, else the one of the user. Returns whether it
/// names machines.
Result<bool> read_environment_file(os::Env& env, const std::string& directory,
                                   experiment::AuptimizerExperiment& experiment) {
  for (const auto& folder : {directory, env.variable("HOME").value_or("")}) {
    const std::string file = folder + kEnvironmentFile;
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

/// A working directory that this machine lacks is one of the machines on which the trials run. As
/// in Auptimizer, the script itself goes with them where it lies beside the document.
Status start_there(os::Env& env, const std::string& directory, const std::string& file,
                   experiment::AuptimizerExperiment& experiment) {
  auto& program = experiment.program;
  program.remote_directory = experiment.directory;
  if (program.remote_directory.front() != '/')
    return fail(ErrorKind::invalid,
                "{}: workingdir: there is no folder {} here, and one of other machines begins "
                "with /",
                file, program.remote_directory);
  std::string line;
  for (const auto word : words(experiment.script)) {
    const std::string beside = fmt::format("{}/{}", directory, word);
    const auto status = env.status(beside);
    std::string text(word);
    if (status && status->kind == os::FileStatus::Kind::file && program.script.empty()) {
      BERTH_ASSIGN(program.script, env.real_path(beside));
      text = shell_quote(program.script);
    }
    line += (line.empty() ? "" : " ") + text;
  }
  auto& command = program.run.text;
  command.replace(command.find(experiment.script + " {"), experiment.script.size(), line);
  experiment.notes.push_back(fmt::format(
      "workingdir: there is no {} here, so trials start in that folder of the machines where they "
      "run; of here {} goes with them",
      program.remote_directory, program.script.empty() ? "nothing" : "only " + program.script));
  return {};
}

}  // namespace

Result<FromAuptimizer> from_auptimizer(os::Env& env, std::string_view text, const std::string& file,
                                       std::string& directory, bool elsewhere) {
  BERTH_ASSIGN(auto experiment, experiment::read_auptimizer(text, file));
  BERTH_ASSIGN(const bool named, read_environment_file(env, directory, experiment));
  const std::string& work = experiment.directory;
  if (!work.empty()) {
    const auto path = env.real_path(work.front() == '/' ? work : directory + "/" + work);
    if (path) {
      directory = *path;
    } else if (path.error().kind == ErrorKind::not_found &&
               (elsewhere || !experiment.cluster.empty())) {
      BERTH_TRY(start_there(env, directory, file, experiment));
    } else {
      return std::unexpected(within(file + ": workingdir", path.error()));
    }
  }
  for (const auto& note : experiment.notes) print_error(fmt::format("{}: {}\n", file, note));
  return FromAuptimizer{std::move(experiment.program), experiment.cluster,
                        named || experiment.cluster.starts_with("slurm:")};
}

}  // namespace berth::cli
