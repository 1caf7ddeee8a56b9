// From a flow's file to a run that waits to be driven.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/machine/enclosing_task.h"
#include "berth/run/flow_run.h"
#include "berth/run/prepare.h"

namespace berth::run {
namespace {

std::unexpected<Error> at(const FlowProgram& program, int line, const flow::Step& step,
                          std::string_view key, Error error) {
  return std::unexpected(within(
      fmt::format("{}:{}: steps.{}.{}", program.file, line, step.name, key), std::move(error)));
}

/// Whether each step fits the empty machine by itself.
Status check_places(Site& site, const FlowProgram& program, const flow::Flow& flow) {
  Resources all;
  for (const auto& step : flow.steps)
    step.resources.each([&](std::string_view resource, std::int64_t amount) {
      all.set(resource, std::max(amount, all.get(resource)));
    });
  BERTH_TRY(find_devices(site, all));
  BERTH_ASSIGN(const auto capacity, machine::discover(*site.env, site.capacity));
  const auto host = machine::host_of(capacity, site.devices ? &*site.devices : nullptr);
  const machine::Machine machine(host.total, host.links);
  for (const auto& step : flow.steps) {
    if (step.enforce)
      if (const auto status = check_enforced(site, step.resources); !status)
        return at(program, step.line, step, "enforce", status.error());
    const auto fits = machine.dry_run({step.resources, program.name, step.selection});
    if (fits) continue;
    Error error = fits.error();
    if (site.devices) error.message += machine::unusable_text(*site.devices);
    error.message += machine::enclosing_task_text(*site.env);
    return at(program, step.resources_line > 0 ? step.resources_line : step.line, step, "resources",
              std::move(error));
  }
  return {};
}

/// A step's directory holds only what it takes in, so a program must be in PATH or an input.
Status check_programs(Site& site, const FlowProgram& program, const flow::Flow& flow) {
  for (const auto& step : flow.steps) {
    if (const auto status = check_shell(*site.env, step.run, "/"); !status)
      return at(program, step.run_line, step, "run", status.error());
    const auto first = first_program(step.run);
    if (!first || (first->find('/') != std::string::npos && !first->starts_with('/'))) continue;
    if (const auto status = check_executable(*site.env, *first, "/"); !status)
      return at(program, step.run_line, step, "run", status.error());
  }
  return {};
}

/// A flow must not write over itself.
Status check_outputs(const FlowProgram& program, const flow::Flow& flow) {
  const std::string own = program.file.substr(program.file.rfind('/') + 1);
  for (const auto& step : flow.steps)
    for (const auto& output : step.out)
      if (output.path == own)
        return fail(ErrorKind::invalid, "{}:{}: steps.{}.out.{}: {} is the flow's own file",
                    program.file, output.line, step.name, output.name, own);
  return {};
}

/// Conditions are asked when their task could start; the variables that they name are those of now.
void ask_variables(const flow::Flow& flow, const flow::World& world) {
  for (const auto& step : flow.steps)
    for (const auto& term : step.when)
      if (term.kind == flow::Condition::Kind::equals && term.left.starts_with("env."))
        (void)world.variable(term.left.substr(4));
}

}  // namespace

Status check_flow(Site& site, FlowProgram& program, const std::string& directory, bool here) {
  BERTH_ASSIGN(auto flow, read_flow(program));
  if (here) BERTH_TRY(check_places(site, program, flow));
  if (here) BERTH_TRY(check_programs(site, program, flow));
  BERTH_TRY(check_outputs(program, flow));
  BERTH_TRY(flow::Graph::build(std::move(flow), world_of(*site.env, directory, program.answers)));
  return {};
}

Result<store::RunRecord> submit(Site& site, FlowProgram program, const std::string& directory) {
  BERTH_ASSIGN(auto flow, read_flow(program));
  auto world = world_of(*site.env, directory, program.answers);
  ask_variables(flow, world);
  BERTH_ASSIGN(const auto graph, flow::Graph::build(std::move(flow), std::move(world)));
  store::NewRun run;
  run.name = program.name;
  run.kind = "flow";
  run.spec_json = to_json_text(program);
  run.directory = directory;
  run.priority = program.priority;
  run.created = site.env->wall();
  for (std::int64_t i = 0; i < graph.known(); ++i) run.tasks.push_back({graph.name({i}), {}});
  return site.store->submit(run);
}

Result<std::optional<FlowProgram>> edited(os::Env& env, const store::RunRecord& record) {
  constexpr std::size_t kLargest = 16U << 20;
  BERTH_ASSIGN(std::optional<FlowProgram> program, flow_program(record.spec_json));
  const std::string name = program->file.substr(program->file.rfind('/') + 1);
  auto text = env.read_file(record.directory + "/" + name, kLargest);
  if (!text) return std::unexpected(text.error());
  if (*text == program->text) return std::nullopt;
  program->text = *std::move(text);
  return program;
}

Result<std::string> resubmitted(Site& site, const store::RunRecord& record, FlowProgram edited) {
  edited.shell.clear();
  edited.answers = {};
  BERTH_ASSIGN(const auto flow, read_flow(edited));
  BERTH_ASSIGN(const auto former, flow_program(record.spec_json));
  BERTH_ASSIGN(const auto before, read_flow(former));
  if (flow.clusters != before.clusters)
    return fail(ErrorKind::invalid, "{}: cluster: {} stays where it is: berth run {}", edited.file,
                record.name, edited.file);
  BERTH_ASSIGN(const auto tasks, site.store->tasks(record.id));
  for (const auto& task : tasks) {
    const std::string step = task.label.substr(0, task.label.find('/'));
    if (std::ranges::find(flow.steps, step, &flow::Step::name) == flow.steps.end())
      return fail(ErrorKind::invalid,
                  "{}: there is no step {} any more, of which {} has tasks: berth run {}",
                  edited.file, step, record.name, edited.file);
  }
  BERTH_TRY(check_flow(site, edited, record.directory, false));
  ask_variables(flow, world_of(*site.env, record.directory, edited.answers));
  return to_json_text(edited);
}

}  // namespace berth::run
