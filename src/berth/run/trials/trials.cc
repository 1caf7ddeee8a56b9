// The trials of an experiment, or the one task of a command: how each is started. Which they are,
// and what they say, is in trials_search.cc.
#include "berth/run/trials/trials.h"

#include <algorithm>

#include "berth/experiment/proposers/population.h"
#include "berth/experiment/proposers/space.h"
#include "berth/run/drive/passive_worker.h"
#include "berth/run/state/recorded_environment.h"
#include "berth/run/state/run_input.h"

namespace berth::run {
namespace {

constexpr std::string_view kParameterFile = "params_file";
constexpr std::string_view kSave = "save";
/// Longer parameters are in a file, which BERTH_PARAMS_FILE names instead of BERTH_PARAMS.
constexpr std::size_t kMostInVariable = 100'000;
constexpr std::string_view kAuptimizerModule =
#include "berth/run/aup.inc"
    ;

std::vector<machine::DeviceSelection> selections_of(const experiment::Program& program) {
  if (program.selection == machine::DeviceSelection()) return {};
  return {program.selection};
}

/// Of all attempts and budgets of the trial: what one left there the next finds. With pbt each
/// budget has its own, so that what a trial ended with stays as it is.
std::string checkpoint_of(const std::string& run_directory, const experiment::Program& program,
                          const std::string& label) {
  const bool own = program.search.method == experiment::Search::Method::pbt;
  return fmt::format("{}/checkpoints/{}", run_directory,
                     own ? label : label.substr(0, label.find('@')));
}

/// Set for the best one, when it runs again.
std::string save_of(const store::TaskRecord& task) {
  return task.label == experiment::kBestAgain ? "1" : "0";
}

std::string parameter_file_of(const std::string& run_directory, const store::TaskRecord& task) {
  return fmt::format("{}/params/{}.json", run_directory, task.number.value);
}

}  // namespace

Trials::Trials(Context& context, const store::RunRecord& record, experiment::Program program)
    : context_(context),
      env_(*context.env),
      directory_(run_directory(context, record.name)),
      record_(record),
      program_(std::move(program)),
      options_{.parallel = program_.parallel,
               .seed = program_.search.seed,
               .stop_on_failure = program_.stop_on_failure,
               .allow_failures = program_.allow_failures,
               .outlive = program_.outlive,
               .asked = program_.passive ? asked_of(program_) : std::vector<std::string>(),
               .score_labels = program_.score_labels,
               .retain = program_.retain,
               .in_turn = false,
               .learns = adaptive(program_.search),
               .most = program_.resources,
               .gpus = program_.gpus,
               .selections = selections_of(program_),
               .shares_devices = machine::takes_part(program_.resources),
               .goal = program_.goal,
               .constraints = program_.constraints,
               .expected = expected_tasks(program_)},
      enqueued_(env_, enqueued_directory(directory_)) {
  const bool external = program_.search.method == experiment::Search::Method::external;
  if (external) {
    auto environment = task_environment(context_);
    set(environment, "BERTH_RUN", record_.name);
    set(environment, "BERTH_RUN_DIR", directory_);
    external_.emplace(env_,
                      ExternalProposer::Options{
                          .argv = exec::command_line(program_.search.proposer,
                                                     [](std::string_view) { return std::nullopt; }),
                          .environment = std::move(environment),
                          .directory = record_.directory,
                          .pipe = directory_ + "/proposer.pipe",
                          .timeout = program_.search.answer_timeout});
  } else if (adaptive(program_.search)) {
    proposer_ = make_proposer(program_);
    if (program_.search.method == experiment::Search::Method::pbt && !program_.passive)
      copies_.emplace(env_);
  }
  if (program_.early_stop) stopper_.emplace(*program_.early_stop, *program_.goal);
}

ResourceRequest Trials::request(const store::TaskRecord&, std::int64_t) const {
  return {program_.resources, program_.selection, program_.priority, program_.retries,
          program_.timeout};
}

Result<exec::Launch> Trials::launch(const store::TaskRecord& task, Token token,
                                    std::int64_t attempt) {
  started(task.number);
  exec::Environment environment = program_.environment;
  for (const auto& [name, value] : task.params) set(environment, parameter_variable(name), value);
  std::string params = experiment::values_json(task.params, program_.types);
  const bool long_params = params.size() > kMostInVariable;
  if (long_params)
    set(environment, "BERTH_PARAMS_FILE", parameter_file(task));
  else
    set(environment, "BERTH_PARAMS", std::move(params));
  name_task(environment, directory_, record_, task, token, attempt);
  if (names(kCheckpoint) || program_.checkpoints) {
    const auto* parent = experiment::find_value(task.params, experiment::kParent);
    if (copies_ && parent != nullptr && !env_.status(checkpoint(task.label)))
      return fail(ErrorKind::not_found,
                  "its copy of the checkpoint of {} was removed, because all other trials have "
                  "continued from it",
                  *parent);
    BERTH_TRY(env_.make_directory(checkpoint(task.label), 0700));
    set(environment, "BERTH_CHECKPOINT_DIR", checkpoint(task.label));
  }
  if (program_.save_best) set(environment, "BERTH_SAVE", save_of(task));
  const std::string model = fmt::format("{}/aup_models/models_{}", record_.directory, record_.name);
  const bool saves_model = program_.auptimizer && save_of(task) == "1";
  if (saves_model) set(environment, "BERTH_MODEL", model);
  if (names(kParameterFile) || long_params) {
    BERTH_TRY(env_.make_directory(directory_ + "/params", 0700));
    experiment::Values values = task.params;
    if (program_.auptimizer) values.emplace_back("job_id", fmt::format("{}", task.number.value));
    // By this a script finds what the trial left when its budget was smaller.
    if (program_.auptimizer && program_.search.budget)
      values.emplace_back("tid", task.label.substr(0, task.label.find('@')));
    if (saves_model) {
      values.emplace_back("save_model", "true");
      values.emplace_back("folder_name", "models_" + record_.name);
    }
    BERTH_TRY(env_.replace_file(parameter_file(task),
                                experiment::values_json(values, program_.types) + "\n", 0600));
  }
  const std::string modules = directory_ + "/python";
  if (program_.auptimizer) BERTH_TRY(offer_module(modules, environment));
  exec::Launch launch{
      .task = task.number,
      .token = token,
      .request = {program_.resources, record_.name + "/" + task.label, program_.selection},
      .argv = trial_command(program_, directory_, task),
      .environment = std::move(environment),
      .directory =
          program_.remote_directory.empty() ? record_.directory : program_.remote_directory,
      .timeout = program_.timeout,
      .grace = program_.grace,
      .enforce = program_.enforce,
      .gpu_mem_over = exec::watched(program_.resources, program_.gpu_mem_over)};
  // A command, or a server, has no files of its own: where the folder is there too, it runs there.
  launch.there = !program_.remote_directory.empty();
  if (launch.there && !program_.script.empty()) launch.stage_in_once = {program_.script};
  if (!launch.there && program_.kind == "experiment") launch.stage_in_once = {record_.directory};
  if (program_.auptimizer) launch.stage_in_once.push_back(modules);
  if (saves_model) launch.stage_out.push_back(model);
  if (names(kParameterFile) || long_params) launch.stage_in.push_back(parameter_file(task));
  BERTH_TRY(give_input(launch));
  if (names(kCheckpoint) || program_.checkpoints) {
    launch.stage_in.push_back(checkpoint(task.label));
    launch.stage_out.push_back(checkpoint(task.label));
  }
  return launch;
}

Status Trials::give_input(exec::Launch& launch) {
  if (program_.input.empty()) return {};
  launch.input = input_file(directory_);
  if (!env_.status(launch.input))
    return fail(ErrorKind::not_found,
                "{}: the standard input of the run is missing; submit the run again with --stdin",
                launch.input);
  launch.stage_in_once.push_back(launch.input);
  return {};
}

/// The module that the scripts of such a document import, before whatever else they would find.
Status Trials::offer_module(const std::string& directory, exec::Environment& environment) {
  if (!module_offered_) {
    BERTH_TRY(env_.make_directory(directory, 0700));
    BERTH_TRY(env_.replace_file(directory + "/aup.py", kAuptimizerModule, 0600));
    module_offered_ = true;
  }
  const auto own =
      std::ranges::find(environment, "PYTHONPATH", [](auto& one) { return one.first; });
  const std::string more =
      own != environment.end() ? own->second : env_.variable("PYTHONPATH").value_or("");
  set(environment, "PYTHONPATH", more.empty() ? directory : directory + ":" + more);
  return {};
}

std::vector<std::string> trial_command(const experiment::Program& program,
                                       const std::string& run_directory,
                                       const store::TaskRecord& task) {
  return exec::command_line(program.run, [&](std::string_view name) -> std::optional<std::string> {
    if (const auto* value = experiment::find_value(task.params, name)) return *value;
    if (name == kParameterFile) return parameter_file_of(run_directory, task);
    if (name == kCheckpoint) return checkpoint_of(run_directory, program, task.label);
    if (name == kSave) return save_of(task);
    if (std::ranges::find(program.optional, name) != program.optional.end()) return "";
    return std::nullopt;
  });
}

bool Trials::names(std::string_view name) const {
  const auto named = exec::placeholders(program_.run);
  return std::ranges::find(named, name) != named.end();
}

std::string Trials::checkpoint(const std::string& label) const {
  return checkpoint_of(directory_, program_, label);
}

std::string Trials::parameter_file(const store::TaskRecord& task) const {
  return parameter_file_of(directory_, task);
}

std::unique_ptr<Workload> trials(Context& context, const store::RunRecord& record,
                                 experiment::Program program) {
  return std::make_unique<Trials>(context, record, std::move(program));
}

}  // namespace berth::run
