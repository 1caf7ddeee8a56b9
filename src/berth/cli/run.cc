// berth run: from a file, or from a command line, to a run.
#include "berth/run/runner.h"

#include <variant>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/auptimizer.h"
#include "berth/cli/commands.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/follow.h"
#include "berth/cli/run_plan.h"
#include "berth/cli/table.h"
#include "berth/exec/fields.h"
#include "berth/experiment/auptimizer.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLargestInput = 16U << 20;

bool selects(const Arguments& arguments) {
  return !(arguments.slot_sizes.empty() && arguments.gpu_mem_min.empty() &&
           arguments.policy.empty() && arguments.objective.empty() && arguments.require.empty());
}

/// As the command line says; unchanged where it does not.
Status apply_selection(const Arguments& arguments, machine::DeviceSelection& selection) {
  const auto set = [](std::string_view flag, const std::string& text, auto& value,
                      const auto& read) -> Status {
    if (text.empty()) return {};
    const auto found = read(text);
    if (!found) return fail(ErrorKind::usage, "{}: {}", flag, found.error().message);
    value = *found;
    return {};
  };
  const auto names = [](std::string_view text) -> Result<std::vector<std::string>> {
    std::vector<std::string> required;
    BERTH_TRY(machine::add_required(text, required));
    return required;
  };
  const auto bytes = [](std::string_view text) { return parse_amount(name(Known::gpu_mem), text); };
  if (!arguments.slot_sizes.empty()) selection.slot_sizes = arguments.slot_sizes;
  BERTH_TRY(set("--gpu-mem-min", arguments.gpu_mem_min, selection.memory_min, bytes));
  BERTH_TRY(set("--gpu-policy", arguments.policy, selection.policy, machine::policy_named));
  BERTH_TRY(
      set("--gpu-objective", arguments.objective, selection.objective, machine::objective_named));
  return set("--gpu-require", arguments.require, selection.required, names);
}

Status apply_options(const Arguments& arguments, experiment::Program& program) {
  if (!arguments.name.empty()) {
    if (!experiment::valid_name(arguments.name))
      return fail(ErrorKind::usage,
                  "--name: wanted letters, digits, '_', '.' and '-', at most 64, found '{}'",
                  clip(arguments.name));
    program.name = arguments.name;
  }
  bool no_devices = false;
  for (const auto& [resource, text] : arguments.resources) {
    if (!valid_resource_name(resource))
      return fail(ErrorKind::usage, "--resource: '{}' is no name of a resource", clip(resource));
    auto amount = parse_amount(resource, text);
    if (!amount)
      return std::unexpected(within(fmt::format("--{}", resource), std::move(amount).error()));
    program.resources.set(resource, *amount);
    no_devices = no_devices || (resource == name(Known::gpu) && *amount == 0);
  }
  BERTH_TRY(apply_selection(arguments, program.selection));
  const auto implied = machine::imply_devices(program.selection, no_devices, program.resources);
  if (!implied) return fail(ErrorKind::usage, "{}", implied.error().message);
  if (!arguments.timeout.empty()) {
    auto timeout = parse_duration(arguments.timeout);
    if (!timeout) return std::unexpected(within("--timeout", std::move(timeout).error()));
    if (*timeout <= Duration(0))
      return fail(ErrorKind::usage, "--timeout: wanted more than 0, found {}", arguments.timeout);
    program.timeout = *timeout;
  }
  if (!arguments.gpu_mem_over.empty()) {
    auto over = exec::gpu_mem_over_named(arguments.gpu_mem_over);
    if (!over) return fail(ErrorKind::usage, "--gpu-mem-over: {}", over.error().message);
    program.gpu_mem_over = *over;
  }
  if (!arguments.retain.empty()) {
    auto retain = parse_duration(arguments.retain);
    if (!retain) return std::unexpected(within("--retain", std::move(retain).error()));
    program.retain = *retain;
  }
  if (!arguments.enforce.empty()) program.enforce = arguments.enforce == "required";
  if (arguments.retries > 0) program.retries = arguments.retries;
  if (arguments.priority != 0) program.priority = arguments.priority;
  if (arguments.parallel > 0) program.parallel = arguments.parallel;
  return {};
}

experiment::Program program_of_command(const Arguments& arguments) {
  experiment::Program program;
  program.kind = "command";
  program.run.words = arguments.words;
  program.resources.set(Known::cpu, 1000);
  const std::string& first = arguments.words.front();
  std::string name;
  for (const char c : first.substr(first.find_last_of('/') + 1))
    if (experiment::valid_name(name + c)) name += c;
  program.name = name.empty() ? "run" : name;
  return program;
}

struct Prepared {
  std::variant<experiment::Program, run::FlowProgram> program;
  std::string directory;
  std::string file;
  run::Whereabouts where = {};
};

/// A flow's steps say for themselves what they take.
Result<run::FlowProgram> flow_program(const Arguments& arguments, std::string text,
                                      const std::string& file, run::Whereabouts& where) {
  run::FlowProgram program;
  program.text = std::move(text);
  program.file = file;
  if (!arguments.resources.empty() || selects(arguments) || !arguments.enforce.empty())
    return fail(ErrorKind::usage,
                "{}: what a task of a flow takes stands with its step, as resources", file);
  experiment::Program options;
  BERTH_TRY(apply_options(arguments, options));
  BERTH_ASSIGN(const auto flow, run::read_flow(program));
  where.names = flow.clusters;
  program.name = options.name.empty() ? flow.name : options.name;
  program.parallel = options.parallel;
  program.outlive = true;
  program.retain = options.retain;
  program.priority = options.priority;
  if (!arguments.timeout.empty()) program.timeout = options.timeout;
  if (arguments.retries > 0) program.retries = arguments.retries;
  if (!arguments.gpu_mem_over.empty()) program.gpu_mem_over = options.gpu_mem_over;
  if (!arguments.cache.empty()) program.cache = *run::cache_mode(arguments.cache);
  return program;
}

/// The prepared directory is the file's folder, and becomes where its trials start.
Result<experiment::Program> trials_program(os::Env& env, const Arguments& arguments,
                                           std::string_view text, Prepared& prepared) {
  const std::string& file = prepared.file;
  if (!arguments.cache.empty())
    return fail(ErrorKind::usage, "--cache: only the tasks of a flow are cached, and {} is none",
                file.empty() ? "a command" : file);
  experiment::Program program;
  if (file.empty()) {
    program = program_of_command(arguments);
  } else if (experiment::is_auptimizer(text)) {
    BERTH_ASSIGN(auto read,
                 from_auptimizer(env, text, file, prepared.directory, !arguments.clusters.empty()));
    program = std::move(read.program);
    if (!read.cluster.empty() && !read.machines && arguments.clusters.empty())
      return fail(
          ErrorKind::invalid,
          "{}: resource: which machines? Name them as {}_mapping in .aup/env.ini, or run it "
          "with --cluster NAME",
          file, read.cluster.substr(0, read.cluster.find(':')));
    prepared.where.own = read.cluster;
    if (!read.cluster.empty())
      prepared.where.names = {read.cluster.substr(0, read.cluster.find(':'))};
  } else {
    BERTH_ASSIGN(program, experiment::read_program(text, file));
    prepared.where.names = program.clusters;
  }
  BERTH_TRY(apply_options(arguments, program));
  program.outlive = true;
  return program;
}

/// The points that stand in a file of their own.
Status read_sequence(os::Env& env, const std::string& directory, experiment::Program& program) {
  const std::string& file = program.search.file;
  if (file.empty()) return {};
  BERTH_ASSIGN(const std::string text,
               env.read_file(file.front() == '/' ? file : directory + "/" + file, kLargestInput));
  return experiment::read_points(text, file, program);
}

/// The trials of an earlier run that this program could have proposed itself, the latest of them.
Status begin_with(run::Site& site, const std::string& name, experiment::Program& program) {
  BERTH_ASSIGN(const auto run, site.store->find_run(name));
  if (!adaptive(program.search))
    return fail(ErrorKind::usage,
                "--warm-start: this search learns from no trial; methods tpe, halving, hyperband "
                "and external do");
  BERTH_ASSIGN(const auto tasks, site.store->tasks(run.id));
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    if (program.earlier.size() == experiment::kMostEarlier) break;
    if (task->state != store::TaskState::done) continue;
    if (experiment::could_begin_with(program, task->params, task->metrics))
      program.earlier.push_back({task->params, task->metrics});
  }
  std::ranges::reverse(program.earlier);
  if (program.earlier.empty())
    return fail(ErrorKind::invalid,
                "--warm-start: no trial of {} lies within these params and has what the goal is "
                "about",
                run.name);
  return {};
}

Result<Prepared> prepare(os::Env& env, const Arguments& arguments) {
  Prepared prepared{.program = {}, .directory = {}, .file = arguments.target};
  std::string text, folder = ".";
  if (arguments.words.empty()) {
    BERTH_ASSIGN(text, env.read_file(prepared.file, kLargestInput));
    // What comes through a pipe has no folder: the one we are in stands for it.
    if (const auto path = env.real_path(prepared.file))
      folder = path->substr(0, path->find_last_of('/') + 1);
  }
  BERTH_ASSIGN(prepared.directory, env.real_path(folder));
  if (!prepared.file.empty() && run::is_flow(text)) {
    BERTH_ASSIGN(prepared.program,
                 flow_program(arguments, std::move(text), prepared.file, prepared.where));
  } else {
    BERTH_ASSIGN(auto program, trials_program(env, arguments, text, prepared));
    BERTH_TRY(read_sequence(env, prepared.directory, program));
    prepared.program = std::move(program);
  }
  if (!arguments.clusters.empty()) prepared.where = {arguments.clusters, ""};
  prepared.where.confirmed = arguments.send_large;
  return prepared;
}

/// What other machines have is known when they answer.
Status check(run::Site& site, Prepared& prepared) {
  const bool here = prepared.where.names.empty();
  BERTH_TRY(run::check_clusters(*site.env, prepared.where));
  if (auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    return run::check_flow(site, *flow, prepared.directory, here);
  auto& program = std::get<experiment::Program>(prepared.program);
  if (!here && program.passive)
    return fail(ErrorKind::usage, "--cluster: passive trials run wherever whoever asks is");
  if (!here) return {};
  BERTH_TRY(run::divide_gpus(site, program));
  return run::check_program(site, program, prepared.directory, prepared.file);
}

Result<int> show_plan_of(run::Site& site, const Prepared& prepared, bool json) {
  if (const auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    return show_flow_plan(site, *flow, prepared.directory, json);
  return show_plan(site, std::get<experiment::Program>(prepared.program), json);
}

Result<store::RunRecord> submit(run::Site& site, const Prepared& prepared) {
  if (const auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    return run::submit(site, *flow, prepared.directory);
  return run::submit(site, std::get<experiment::Program>(prepared.program), prepared.directory);
}

}  // namespace

Result<int> run_command(os::Env& env, const Arguments& arguments) {
  if (arguments.target.empty() == arguments.words.empty())
    return fail(ErrorKind::usage, "wanted either a file or -- and a command; see berth run --help");
  BERTH_ASSIGN(Prepared prepared, prepare(env, arguments));
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  if (!arguments.warm_start.empty()) {
    auto* program = std::get_if<experiment::Program>(&prepared.program);
    if (program == nullptr) return fail(ErrorKind::usage, "--warm-start: a flow searches nothing");
    BERTH_TRY(begin_with(site, arguments.warm_start, *program));
  }
  BERTH_TRY(check(site, prepared));
  const auto* program = std::get_if<experiment::Program>(&prepared.program);
  const bool takes_folder = program != nullptr && program->kind != "command";
  if (arguments.plan_only && takes_folder && !prepared.where.names.empty())
    return show_sending(env, prepared.directory, prepared.where.names, arguments.json);
  if (arguments.plan_only && !prepared.where.names.empty())
    return fail(ErrorKind::usage,
                "--plan: what other machines have is known when they answer: "
                "berth cluster probe {}",
                join(prepared.where.names, " "));
  if (arguments.plan_only) return show_plan_of(site, prepared, arguments.json);
  BERTH_ASSIGN(const auto record, submit(site, prepared));
  BERTH_TRY(run::keep_clusters(site, record, prepared.where));
  if (arguments.detach) return drive_detached(env, site, record, arguments.json);
  return drive_to_end(env, site, record, arguments.json);
}

}  // namespace berth::cli
