#include "berth/engine/runs/auptimizer_document.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/experiment/auptimizer/auptimizer.h"

namespace berth::engine {
namespace {

constexpr std::size_t kLargestEnvironmentFile = 1U << 20;
/// The saved model comes back from the folder of another machine.
constexpr std::string_view kModelIsTaken = R"sh(
berth_status=$?
if [ "${BERTH_SAVE-}" = 1 ] && [ -d "aup_models/${BERTH_MODEL##*/}" ]
then mkdir -p "${BERTH_MODEL%/*}" && cp -r "aup_models/${BERTH_MODEL##*/}" "${BERTH_MODEL%/*}/"
fi
exit $berth_status)sh";
constexpr const char* kEnvironmentFile = "/.aup/env.ini";

/// Reads the environment file beside the document, else the one of the user.
Status read_environment_file(os::Env& env, const std::string& directory,
                             experiment::AuptimizerExperiment& experiment) {
  for (const auto& folder : {directory, env.variable("HOME").value_or("")}) {
    const std::string file = folder + kEnvironmentFile;
    const auto text = env.read_file(file, kLargestEnvironmentFile);
    if (text && !experiment.settings.empty()) {
      BERTH_TRY(experiment::read_machines(*text, file, experiment));
      return {};
    }
    if (text) return experiment::read_gpu_mapping(*text, file, experiment);
    if (text.error().kind != ErrorKind::not_found) return std::unexpected(text.error());
  }
  return {};
}

bool is_file(os::Env& env, const std::string& path) {
  const auto status = env.status(path);
  return status && status->kind == os::FileStatus::Kind::file;
}

/// Trials start in the working directory of the machines where they run. As in Auptimizer, it is
/// made there, and the script itself goes with them where it lies beside the document.
Status start_there(os::Env& env, const std::string& directory, const std::string& file,
                   experiment::AuptimizerExperiment& experiment) {
  auto& program = experiment.program;
  if (experiment.directory.front() != '/')
    return fail(ErrorKind::invalid,
                "{}: workingdir: there is no folder {} on this machine; a folder on other machines "
                "must begin with /",
                file, experiment.directory);
  program.remote_directory = "/";
  std::string line;
  for (const auto word : words(experiment.script)) {
    const std::string beside = fmt::format("{}/{}", directory, word);
    std::string text(word);
    if (program.script.empty() && is_file(env, beside)) {
      BERTH_ASSIGN(program.script, env.real_path(beside));
      text = shell_quote(program.script);
    }
    line += (line.empty() ? "" : " ") + text;
  }
  auto& command = program.run.text;
  command.replace(command.find(experiment.script + " {"), experiment.script.size(), line);
  const std::string folder = shell_quote(experiment.directory);
  if (program.save_best) command = fmt::format("(\n{}\n){}", command, kModelIsTaken);
  command = fmt::format("mkdir -p -- {0} && cd -- {0} || exit 1\n{1}", folder, command);
  experiment.notes.push_back(fmt::format(
      "workingdir: trials start in {} on the machines where they run; {} is sent from this machine",
      experiment.directory, program.script.empty() ? "nothing" : "only " + program.script));
  return {};
}

/// A folder of this machine by that name is not the one that is meant where the script lies beside
/// the document only: then it is one of other machines.
bool is_of_others(os::Env& env, const std::string& work, const std::string& directory,
                  const std::string& script) {
  const auto named = words(script);
  const auto lies_in = [&](const std::string& folder) {
    return std::ranges::any_of(
        named, [&](auto word) { return is_file(env, fmt::format("{}/{}", folder, word)); });
  };
  return work.front() == '/' && !lies_in(work) && lies_in(directory);
}

}  // namespace

Result<experiment::AuptimizerExperiment> read_auptimizer_document(os::Env& env,
                                                                  std::string_view text,
                                                                  const std::string& file,
                                                                  std::string& directory,
                                                                  bool has_clusters) {
  BERTH_ASSIGN(auto experiment, experiment::read_auptimizer(text, file));
  BERTH_TRY(read_environment_file(env, directory, experiment));
  std::string& work = experiment.directory;
  if (work == "~" || work.starts_with("~/")) work.replace(0, 1, env.variable("HOME").value_or("~"));
  if (!work.empty()) {
    const bool remote = has_clusters || !experiment.settings.empty();
    const auto path = env.real_path(work.front() == '/' ? work : directory + "/" + work);
    if (remote && path ? is_of_others(env, work, directory, experiment.script)
                       : remote && path.error().kind == ErrorKind::not_found) {
      BERTH_TRY(start_there(env, directory, file, experiment));
    } else if (path) {
      directory = *path;
    } else {
      return std::unexpected(within(file + ": workingdir", path.error()));
    }
  }
  return experiment;
}

}  // namespace berth::engine
