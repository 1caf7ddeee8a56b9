#include "berth/run/flow_plan.h"

#include "berth/run/flow_tasks.h"

namespace berth::run {
namespace {

/// The outputs of the task if the cache has them.
Result<std::optional<std::vector<fileset::Fileset>>> look_up(Site& site,
                                                             fileset::ObjectStore& cache,
                                                             Inputs& inputs,
                                                             const flow::TaskSpec& spec) {
  using Found = std::optional<std::vector<fileset::Fileset>>;
  if (spec.outputs.empty()) return Found{};
  std::vector<Digest> digests;
  for (const auto& input : spec.inputs) {
    if (input.world.empty()) {
      digests.push_back(fileset::digest(input.content));
      continue;
    }
    BERTH_ASSIGN(const auto content, inputs.get(input.world));
    digests.push_back(fileset::digest(content));
  }
  const auto result = site.store->result(to_hex(sha256(flow::record(spec, digests))));
  if (!result && result.error().kind == ErrorKind::not_found) return Found{};
  if (!result) return std::unexpected(result.error());
  auto outputs = parse_outputs(result->outputs);
  if (!outputs || outputs->size() != spec.outputs.size()) return Found{};
  for (const auto& output : *outputs)
    if (!cache.hold(output)) return Found{};
  return Found(*std::move(outputs));
}

}  // namespace

Result<std::vector<StepPlan>> plan(Site& site, FlowProgram& program, const std::string& directory) {
  BERTH_ASSIGN(auto flow, read_flow(program));
  BERTH_ASSIGN(auto cache, open_cache(site));
  Inputs inputs(*site.env, cache, directory);
  std::vector<StepPlan> steps;
  for (const auto& step : flow.steps)
    steps.push_back({.name = step.name, .resources = step.resources, .selection = step.selection});
  BERTH_ASSIGN(auto graph, flow::Graph::build(std::move(flow),
                                              world_of(*site.env, directory, program.answers)));
  for (;;) {
    BERTH_ASSIGN(const auto ready, graph.take_ready());
    if (ready.run.empty() && ready.skipped.empty()) break;
    for (const auto task : ready.skipped)
      ++steps[static_cast<std::size_t>(graph.step_of(task).value)].skipped;
    for (const auto task : ready.run) {
      StepPlan& step = steps[static_cast<std::size_t>(graph.step_of(task).value)];
      BERTH_ASSIGN(const auto spec, graph.spec(task));
      std::optional<std::vector<fileset::Fileset>> found;
      if (reads(program.cache)) {
        BERTH_ASSIGN(found, look_up(site, cache, inputs, spec));
      }
      ++(found ? step.cached : step.runs);
      if (found) BERTH_TRY(graph.finish(task, *std::move(found)));
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto range = graph.tasks({static_cast<std::int64_t>(i)});
    steps[i].unfolded = range.has_value();
    if (range) steps[i].later = range->count - steps[i].cached - steps[i].runs - steps[i].skipped;
  }
  return steps;
}

}  // namespace berth::run
