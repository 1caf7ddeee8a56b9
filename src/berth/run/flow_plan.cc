#include "berth/run/flow_plan.h"

#include "berth/run/earlier_task.h"
#include "berth/run/flow_tasks.h"
#include "berth/run/taken_outputs.h"
#include "berth/run/task_report.h"

namespace berth::run {
namespace {

/// What the task depends on, as text.
Result<std::string> depends_of(Inputs& inputs, const flow::TaskSpec& spec) {
  std::vector<Digest> digests;
  for (const auto& input : spec.inputs) {
    if (input.world.empty()) {
      digests.push_back(fileset::digest(input.content));
      continue;
    }
    BERTH_ASSIGN(const auto content, inputs.get(input.world));
    digests.push_back(fileset::digest(content));
  }
  return flow::record(spec, digests);
}

/// The outputs of the task if the cache has them.
Result<std::optional<std::vector<fileset::Fileset>>> look_up(Context& context,
                                                             fileset::ObjectStore& cache,
                                                             const flow::TaskSpec& spec,
                                                             const std::string& depends) {
  using Found = std::optional<std::vector<fileset::Fileset>>;
  if (spec.outputs.empty()) return Found{};
  const auto result = context.store->result(to_hex(sha256(depends)));
  if (!result && result.error().kind == ErrorKind::not_found) return Found{};
  if (!result) return std::unexpected(result.error());
  auto outputs = parse_outputs(result->outputs);
  if (!outputs || outputs->size() != spec.outputs.size()) return Found{};
  for (const auto& output : *outputs)
    if (!cache.hold(output)) return Found{};
  return Found(*std::move(outputs));
}

Result<TaskPlan> planned(Context& context, std::span<const store::RunRecord> runs,
                         const FlowProgram& program, const flow::Step& step,
                         const flow::TaskSpec& spec, const std::string& depends) {
  TaskPlan plan{.name = spec.name, .command = command_text(spec.command), .because = {}};
  if (step.forced) plan.because.emplace_back("it is forced");
  if (step.out.empty()) plan.because.emplace_back("a step without outputs runs each time");
  if (!plan.because.empty()) return plan;
  const auto earlier = earlier_task(context, runs, program.name, {}, spec.name);
  if (!earlier) {
    plan.because.emplace_back("no earlier run of the flow has it");
    return plan;
  }
  BERTH_ASSIGN(plan.because, changes_since(*earlier, depends));
  if (plan.because.empty())
    plan.because.push_back(
        fmt::format("nothing has changed since {}, but the cache has no result", earlier->run));
  return plan;
}

}  // namespace

Result<std::vector<StepPlan>> plan(Context& context, FlowProgram& program,
                                   const std::string& directory) {
  BERTH_ASSIGN(auto flow, read_flow(program));
  BERTH_ASSIGN(auto cache, open_cache(context));
  Inputs inputs(*context.env, cache, directory);
  BERTH_ASSIGN(const auto runs, context.store->runs());
  std::vector<StepPlan> steps;
  for (const auto& step : flow.steps)
    steps.push_back({.name = step.name, .resources = step.resources, .selection = step.selection});
  BERTH_ASSIGN(auto graph, flow::Graph::build(std::move(flow),
                                              world_of(*context.env, directory, program.answers)));
  for (;;) {
    BERTH_ASSIGN(const auto ready, graph.take_ready());
    if (ready.run.empty() && ready.skipped.empty() && ready.taken.empty()) break;
    for (const auto task : ready.taken) BERTH_TRY(take_outputs(graph, inputs, task));
    for (const auto task : ready.skipped)
      ++steps[static_cast<std::size_t>(graph.step_of(task).value)].skipped;
    for (const auto task : ready.run) {
      StepPlan& step = steps[static_cast<std::size_t>(graph.step_of(task).value)];
      BERTH_ASSIGN(const auto spec, graph.spec(task));
      BERTH_ASSIGN(const std::string depends, depends_of(inputs, spec));
      const flow::Step& of =
          graph.flow().steps[static_cast<std::size_t>(graph.step_of(task).value)];
      std::optional<std::vector<fileset::Fileset>> found;
      if (reads(program.cache) && !of.forced) {
        BERTH_ASSIGN(found, look_up(context, cache, spec, depends));
      }
      if (!found) {
        BERTH_ASSIGN(step.tasks.emplace_back(), planned(context, runs, program, of, spec, depends));
      }
      ++(found ? step.cached : step.runs);
      if (found) BERTH_TRY(graph.finish(task, *std::move(found)));
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto range = graph.tasks({static_cast<std::int64_t>(i)});
    steps[i].unfolded = range.has_value();
    std::int64_t wanted = 0;
    if (range)
      for (std::int64_t task = 0; task < range->count; ++task)
        wanted += graph.wanted({range->first.value + task}) ? 1 : 0;
    if (range) steps[i].later = wanted - steps[i].cached - steps[i].runs - steps[i].skipped;
  }
  return steps;
}

}  // namespace berth::run
