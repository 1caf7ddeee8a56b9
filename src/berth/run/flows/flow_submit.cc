// From a flow's file to a run that waits to be driven.
#include <algorithm>
#include <map>
#include <set>

#include "berth/base/text.h"
#include "berth/exec/container.h"
#include "berth/machine/enclosing_task.h"
#include "berth/run/drive/images.h"
#include "berth/run/drive/prepare.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/flows/long_starts.h"
#include "berth/run/flows/own_files.h"
#include "berth/run/flows/taken_outputs.h"
#include "berth/run/state/advice.h"

namespace berth::run {
namespace {

std::unexpected<Error> at(int line, const flow::Step& step, std::string_view key, Error error) {
  return std::unexpected(
      within(fmt::format("{}:{}: steps.{}.{}", step.file, line, step.name, key), std::move(error)));
}

/// Whether each step fits the empty machine by itself.
Status check_places(Context& context, const FlowProgram& program, const flow::Flow& flow) {
  Resources all;
  for (const auto& step : flow.steps)
    step.resources.each([&](std::string_view resource, std::int64_t amount) {
      all.set(resource, std::max(amount, all.get(resource)));
    });
  BERTH_TRY(find_devices(context, all));
  BERTH_ASSIGN(const auto capacity, machine::discover(*context.env, context.capacity));
  const auto host = machine::host_of(capacity, context.devices ? &*context.devices : nullptr);
  const machine::Machine machine(host.total, host.links);
  for (const auto& step : flow.steps) {
    if (step.enforce)
      if (const auto status = check_enforced(context, step.resources); !status)
        return at(step.line, step, "enforce", status.error());
    const auto fits = machine.dry_run({step.resources, program.name, step.selection});
    if (fits) continue;
    Error error = fits.error();
    if (context.devices) error.message += machine::unusable_text(*context.devices);
    error.message += machine::enclosing_task_text(*context.env);
    return at(step.resources_line > 0 ? step.resources_line : step.line, step, "resources",
              std::move(error));
  }
  return {};
}

/// What its sandbox needs and shows has to be here.
Status check_sandbox(os::Env& env, const flow::Step& step) {
  const auto environment = env.environment();
  const auto bwrap = exec::find_engine(env, environment, {.sandbox = true});
  if (step.container.image.empty() && !bwrap) return at(step.line, step, "sandbox", bwrap.error());
  for (const auto& shown : step.container.shown)
    if (const auto there = env.status(exec::with_home(shown, environment)); !there)
      return at(step.line, step, "sandbox", there.error());
  return {};
}

/// A program of this machine that the task would not see.
Status check_shown(os::Env& env, const flow::Step& step, const std::string& program,
                   const std::string& place) {
  if (!step.container.sandbox) return {};
  flow::Words shown = step.container.shown;
  for (auto& path : shown) path = exec::with_home(path, env.environment());
  if (exec::sandbox_shows(place, shown)) return {};
  return at(
      step.run_line, step, "run",
      Error{ErrorKind::not_found, fmt::format("{} is {}, which is not visible in the sandbox; "
                                              "visible are {} and the paths in `sandbox: [PATH]`",
                                              program, place, exec::kSystemShown)});
}

/// A step's directory holds only what it takes in, so a program must be in PATH or an input.
Status check_programs(Context& context, const flow::Flow& flow, const std::string& directory) {
  std::set<flow::Words> shells;                 // that were found
  std::map<std::string, std::string> programs;  // and where they are
  for (const auto& step : flow.steps) {
    if (step.container.sandbox) BERTH_TRY(check_sandbox(*context.env, step));
    if (!step.container.image.empty()) continue;  // its programs are those of the image
    if (!shells.contains(step.run.shell)) {
      if (const auto status = check_shell(*context.env, step.run, "/"); !status)
        return at(step.run_line, step, "run", status.error());
      if (step.run.words.empty() && exec::needs_shell(step.run.text)) shells.insert(step.run.shell);
    }
    const auto first = first_program(step.run);
    if (!first) continue;
    if (first->find('/') != std::string::npos && !first->starts_with('/')) {
      if (const auto status = check_own_program(*context.env, step, *first, directory); !status)
        return at(step.run_line, step, "run", status.error());
      continue;
    }
    auto known = programs.find(*first);
    if (known == programs.end()) {
      auto place = find_executable(*context.env, *first, "/");
      if (!place) return at(step.run_line, step, "run", place.error());
      known = programs.emplace(*first, *std::move(place)).first;
    }
    BERTH_TRY(check_shown(*context.env, step, *first, known->second));
  }
  return {};
}

/// A flow must not write over itself, in any of its files.
Status check_outputs(const FlowProgram& program, const flow::Flow& flow) {
  const std::string own = program.file.substr(program.file.rfind('/') + 1);
  for (const auto& step : flow.steps)
    for (const auto& output : step.out)
      if (output.path == own || program.parts.contains(output.path))
        return fail(ErrorKind::invalid, "{}:{}: steps.{}.out.{}: {} is the flow's own file",
                    step.file, output.line, step.name, output.name, output.path);
  return {};
}

/// Conditions are asked when their task could start; the variables that they name are those of now.
void ask_variables(const flow::Flow& flow, const flow::World& world) {
  for (const auto& step : flow.steps)
    for (const auto& term : step.when)
      if (term.kind == flow::Condition::Kind::value && term.left.starts_with("env."))
        (void)world.variable(term.left.substr(4));
}

}  // namespace

Result<flow::Words> check_flow(Context& context, FlowProgram& program, const std::string& directory,
                               bool here) {
  BERTH_TRY(take_advice(context, program));
  BERTH_ASSIGN(auto flow, read_flow(program));
  if (here) BERTH_TRY(check_places(context, program, flow));
  if (here) BERTH_TRY(check_programs(context, flow, directory));
  BERTH_TRY(check_outputs(program, flow));
  auto notes = notes_of_own_files(*context.env, flow, directory);
  BERTH_ASSIGN(auto graph, flow::Graph::build(std::move(flow),
                                              world_of(*context.env, directory, program.answers)));
  std::ranges::copy(graph.notes(), std::back_inserter(notes));
  for (const auto& step : graph.flow().steps)
    for (const auto& note : step.notes) notes.push_back(fmt::format("{}: {}", step.file, note));
  if (program.options.only) BERTH_TRY(check_taken(*context.env, graph, directory));
  std::ranges::move(notes_of_long_starts(*context.env, graph, directory, program.answers),
                    std::back_inserter(notes));
  return notes;
}

Result<store::RunRecord> submit(Context& context, FlowProgram program,
                                const std::string& directory) {
  BERTH_ASSIGN(auto flow, read_flow(program));
  auto world = world_of(*context.env, directory, program.answers);
  ask_variables(flow, world);
  BERTH_ASSIGN(const auto graph, flow::Graph::build(std::move(flow), std::move(world)));
  store::NewRun run;
  run.name = program.name;
  run.kind = "flow";
  run.spec_json = to_json_text(program);
  run.directory = directory;
  run.priority = program.priority;
  run.created = context.env->wall();
  for (std::int64_t i = 0; i < graph.known(); ++i)
    if (graph.wanted({i})) run.tasks.push_back({graph.name({i}), {}});
  return context.store->submit(run);
}

Status allow_overwriting(Context& context, const store::RunRecord& record) {
  const std::string directory = run_directory(context, record.name);
  BERTH_TRY(context.env->make_directory(directory, 0700));
  return context.env->replace_file(overwrite_file(directory), "", 0600);
}

Result<std::optional<FlowProgram>> edited(os::Env& env, const store::RunRecord& record) {
  BERTH_ASSIGN(std::optional<FlowProgram> program, flow_program(record.spec_json));
  const std::string name = program->file.substr(program->file.rfind('/') + 1);
  auto text = env.read_file(record.directory + "/" + name, flow::kMostFlowBytes);
  if (!text) return std::unexpected(text.error());
  const auto before = std::pair(std::move(program->text), std::move(program->parts));
  program->text = *std::move(text);
  program->parts.clear();
  program->reading = nullptr;
  BERTH_TRY(take_parts(env, record.directory, *program));
  if (before == std::pair(program->text, program->parts)) return std::nullopt;
  return program;
}

Result<std::string> resubmitted(Context& context, const store::RunRecord& record,
                                FlowProgram edited) {
  edited.options.shell.clear();
  edited.answers = {};
  BERTH_ASSIGN(const auto flow, read_flow(edited));
  BERTH_ASSIGN(const auto former, flow_program(record.spec_json));
  BERTH_ASSIGN(const auto before, read_flow(former));
  if (flow.clusters != before.clusters)
    return fail(ErrorKind::invalid,
                "{}: cluster: {} cannot move to another cluster: use berth run {}", edited.file,
                record.name, edited.file);
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  for (const auto& task : tasks) {
    const std::string step = task.label.substr(0, task.label.find('/'));
    if (std::ranges::find(flow.steps, step, &flow::Step::name) == flow.steps.end())
      return fail(ErrorKind::invalid,
                  "{}: step {}, of which {} has tasks, no longer exists: use berth run {}",
                  edited.file, step, record.name, edited.file);
  }
  BERTH_TRY(check_flow(context, edited, record.directory, false));
  const bool here = flow.clusters.empty();
  BERTH_ASSIGN(const auto missing, find_images(context, edited, record.directory, here));
  if (here) BERTH_TRY(pull_images(context, edited, missing, [](const auto&) {}));
  ask_variables(flow, world_of(*context.env, record.directory, edited.answers));
  return to_json_text(edited);
}

}  // namespace berth::run
