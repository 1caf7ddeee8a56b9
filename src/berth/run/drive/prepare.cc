#include "berth/run/drive/prepare.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/exec/leftovers.h"
#include "berth/machine/enclosing_task.h"
#include "berth/machine/groups/group_plan.h"
#include "berth/run/drive/runner.h"
#include "berth/run/state/run_input.h"

namespace berth::run {

experiment::Program program_of_command(const std::vector<std::string>& words) {
  experiment::Program program;
  program.kind = "command";
  program.run.words = words;
  program.resources.set(Known::cpu, 1000);
  const std::string& first = words.front();
  std::string name;
  for (const char c : first.substr(first.find_last_of('/') + 1))
    if (experiment::valid_name(name + c)) name += c;
  program.name = name.empty() ? "run" : name;
  return program;
}

std::optional<std::string> first_program(const exec::Command& command) {
  const auto argv = command.words.empty() ? words(command.text) : std::vector<std::string_view>();
  const std::string first(command.words.empty() ? argv.front() : command.words.front());
  if (command.words.empty()) {
    if (first.find_first_of("|&;<>()$`\\\"'*?[#~=!{") != std::string::npos) return std::nullopt;
    if (exec::needs_shell(command.text) && first.find('/') == std::string::npos)
      return std::nullopt;
  }
  return first.find('{') == std::string::npos ? std::optional(first) : std::nullopt;
}

Result<std::string> find_executable(os::Env& env, const std::string& program,
                                    const std::string& directory) {
  if (program.empty()) return fail(ErrorKind::invalid, "the name of the program is empty");
  const auto look = [&](std::string path) -> Result<std::string> {
    const auto status = env.status(path);
    if (!status) return fail(ErrorKind::not_found, "{}: no such file", program);
    if (status->kind == os::FileStatus::Kind::directory)
      return fail(ErrorKind::invalid, "{}: is a directory", program);
    if (!status->executable)
      return fail(ErrorKind::invalid, "{}: not executable (chmod +x {})", program,
                  shell_quote(program));
    return path;
  };
  if (program.find('/') != std::string::npos)
    return look(program.front() == '/' ? program : directory + "/" + program);
  const std::string path = env.variable("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const auto place : split(path, ':'))
    if (auto found = look(fmt::format("{}/{}", place.empty() ? "." : place, program))) return found;
  return fail(ErrorKind::not_found, "{}: no such program in PATH", program);
}

Status check_executable(os::Env& env, const std::string& program, const std::string& directory) {
  BERTH_TRY(find_executable(env, program, directory));
  return {};
}

Status check_shell(os::Env& env, const exec::Command& command, const std::string& directory) {
  if (!command.words.empty() || !exec::needs_shell(command.text)) return {};
  const auto line = exec::command_line(command, [](auto) { return std::nullopt; });
  auto status = check_executable(env, line.front(), directory);
  if (!status && exec::is_given_to(exec::kStrictShell, line))
    status.error().message += fmt::format("; {}", exec::kNoStrictShell);
  return status;
}

namespace {

/// The standard input of a program is a path from the directory of its file on.
std::string place_of_input(const experiment::Program& program, const std::string& directory) {
  const bool is_place = program.input == "-" || program.input.starts_with('/');
  return is_place ? program.input : directory + "/" + program.input;
}

}  // namespace

Status check_input_of(os::Env& env, const experiment::Program& program,
                      const std::string& directory, const std::string& file) {
  if (program.input.empty()) return {};
  auto status = check_input(env, place_of_input(program, directory));
  if (status) return {};
  const bool from_file = program.input_line > 0;
  return std::unexpected(within(
      from_file ? fmt::format("{}:{}: stdin", file, program.input_line) : std::string("--stdin"),
      std::move(status).error()));
}

Status check_program(Context& context, const experiment::Program& program,
                     const std::string& directory, const std::string& file) {
  const auto at_run = [&](Error error) {
    if (file.empty()) return error;
    return within(fmt::format("{}:{}: run", file, program.run_line), std::move(error));
  };
  if (const auto first = program.passive ? std::nullopt : first_program(program.run))
    if (const auto status = check_executable(*context.env, *first, directory); !status)
      return std::unexpected(at_run(status.error()));
  if (!program.passive)
    if (const auto status = check_shell(*context.env, program.run, directory); !status)
      return std::unexpected(at_run(status.error()));
  if (auto status = check_input_of(*context.env, program, directory, file); !status) return status;
  if (program.enforce) BERTH_TRY(check_enforced(context, program.resources));
  BERTH_ASSIGN(const auto capacity, machine::discover(*context.env, context.capacity));
  BERTH_TRY(find_devices(context, program.resources, program.gpus));
  const auto host = machine::host_of(capacity, context.devices ? &*context.devices : nullptr);
  machine::Machine machine(host.total, host.links);
  const auto fits = machine.dry_run({program.resources, program.name, program.selection});
  if (!fits) {
    Error error = fits.error();
    if (context.devices) error.message += machine::unusable_text(*context.devices);
    error.message += machine::enclosing_task_text(*context.env);
    if (program.resources_line > 0)
      error.message =
          fmt::format("{}:{}: resources: {}", file, program.resources_line, error.message);
    return std::unexpected(std::move(error));
  }
  return {};
}

Status check_enforced(Context& context, const Resources& resources) {
  const auto plan = machine::plan_groups(*context.env, "", false);
  if (!has_limits(resources) || plan.method != machine::GroupPlan::Method::none) return {};
  return fail(ErrorKind::impossible,
              "enforce: required, but limits are advice on this machine: {}; "
              "'berth machine --probe' tries it",
              plan.because);
}

Status divide_gpus(Context& context, experiment::Program& program) {
  if (program.trials_per_gpu == 1) return {};
  BERTH_TRY(find_devices(context, program.resources, program.gpus));
  std::int64_t least = INT64_MAX;
  for (const auto& share : context.devices->shares) least = std::min(least, share.memory);
  if (context.devices->shares.empty() || least / program.trials_per_gpu == 0)
    return fail(ErrorKind::impossible, "gpu: {} trials cannot share GPU {} of this machine",
                program.trials_per_gpu, program.gpus);
  program.resources.set(Known::gpu_mem, least / program.trials_per_gpu);
  program.trials_per_gpu = 1;
  return {};
}

Status divide_cores(Context& context, experiment::Program& program) {
  constexpr std::int64_t kCore = 1000;
  const bool asks_for_cores = program.resources.get(Known::cpu) != kCore;  // by an option
  if (!program.auptimizer || program.parallel < 2 || asks_for_cores) return {};
  BERTH_ASSIGN(const auto capacity, machine::discover(*context.env, context.capacity));
  const std::int64_t cores = capacity.total.get(Known::cpu);
  program.resources.set(Known::cpu, std::clamp<std::int64_t>(cores / program.parallel, 1, kCore));
  return {};
}

Result<store::RunRecord> submit(Context& context, const experiment::Program& program,
                                const std::string& directory) {
  BERTH_ASSIGN(auto trials, experiment::propose(program));
  store::NewRun run;
  run.name = program.name;
  run.kind = program.kind;
  run.spec_json = experiment::to_json_text(program);
  run.directory = directory;
  run.priority = program.priority;
  run.created = context.env->wall();
  for (auto& params : trials)
    run.tasks.push_back({fmt::format("{}", run.tasks.size() + 1), std::move(params)});
  if (program.input.empty()) return context.store->submit(run);
  BERTH_ASSIGN(auto input, TakenInput::take(context, place_of_input(program, directory)));
  BERTH_ASSIGN(auto record, context.store->submit(run));
  BERTH_TRY(input.keep(context, record.name));
  return record;
}

Result<int> end_orphans(os::Env& env, const std::string& run_directory,
                        const std::function<bool(std::optional<Token>)>& orphaned) {
  return exec::end_marked(env, "BERTH_RUN_DIR=" + run_directory, orphaned);
}

}  // namespace berth::run
