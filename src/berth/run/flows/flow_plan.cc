#include "berth/run/flows/flow_plan.h"

#include <algorithm>
#include <unordered_set>

#include "berth/base/url.h"
#include "berth/flow/attempt_request.h"
#include "berth/remote/transfer/elsewhere.h"
#include "berth/run/flows/dependencies.h"
#include "berth/run/flows/earlier_task.h"
#include "berth/run/flows/flow_tasks.h"
#include "berth/run/flows/taken_outputs.h"
#include "berth/run/flows/temporary.h"
#include "berth/run/state/task_report.h"

namespace berth::run {
namespace {

using Look = remote::Elsewhere::Look;

/// What servers say of URLs, each asked once.
class UrlLooks {
 public:
  UrlLooks(Context& context, fileset::ObjectStore& cache) : context_(context), cache_(cache) {}
  Result<Look> look(const std::string& text, StepPlan& step) {
    if (const auto known = looks_.find(text); known != looks_.end()) return known->second;
    return looks_.emplace(text, ask(text, step)).first->second;
  }

 private:
  Result<Look> ask(const std::string& text, StepPlan& step) {
    BERTH_ASSIGN(const Url url, parse_url(text));
    if (!elsewhere_) {
      if (context_.cloud == nullptr) {
        BERTH_ASSIGN(context_.cloud, remote::load_cloud(*context_.env));
      }
      elsewhere_.emplace(*context_.env, *context_.cloud);
    }
    BERTH_ASSIGN(Look look, elsewhere_->look(cache_, url));
    step.urls.push_back({shown(url.text), look.size, look.there});
    return look;
  }

  Context& context_;
  fileset::ObjectStore& cache_;
  std::optional<remote::Elsewhere> elsewhere_;
  std::unordered_map<std::string, Result<Look>> looks_;
};

/// What the task depends on, as text; "", and why it runs, where that has to be fetched first.
Result<std::string> depends_of(Inputs& inputs, UrlLooks& urls, const flow::TaskSpec& spec,
                               StepPlan& step, std::vector<std::string>& because) {
  std::vector<Digest> digests;
  for (const auto& input : spec.inputs) {
    if (input.world.empty()) {
      digests.push_back(fileset::digest(input.content));
      continue;
    }
    if (is_url(input.world)) {
      const auto look = urls.look(input.world, step);
      if (!look && look.error().kind == ErrorKind::interrupted)
        return std::unexpected(look.error());
      if (!look)
        because.push_back(
            fmt::format("it would fail: in.{}: {}", input.name, look.error().message));
      else if (!look->there)
        because.push_back(shown(input.world) + " has to be downloaded");
      digests.push_back(look ? fileset::digest(look->content) : Digest());
      continue;
    }
    BERTH_ASSIGN(const auto content, inputs.get(input.world));
    digests.push_back(fileset::digest(content));
  }
  return because.empty() ? flow::record(spec, digests) : std::string();
}

/// The outputs of the task if the cache has them.
Result<std::optional<std::vector<fileset::Fileset>>> look_up(
    Context& context, fileset::ObjectStore& cache, const flow::TaskSpec& spec,
    const std::string& depends, const flow::Step& step, bool& gone, flow::Metrics& metrics) {
  using Found = std::optional<std::vector<fileset::Fileset>>;
  if (spec.outputs.empty()) return Found{};
  const auto result = context.store->result(to_hex(sha256(depends)));
  if (!result && result.error().kind == ErrorKind::not_found) return Found{};
  if (!result) return std::unexpected(result.error());
  if (auto left = parse_gone(result->outputs);
      left && step.temp && left->size() == spec.outputs.size()) {
    gone = true;
    return left;
  }
  auto outputs = parse_outputs(result->outputs);
  if (!outputs || outputs->size() != spec.outputs.size()) return Found{};
  metrics = parse_metrics(result->outputs);
  if (!has_metrics(metrics, step.asked_metrics)) return Found{};
  for (const auto& output : *outputs)
    if (!cache.hold(output)) return Found{};
  return Found(*std::move(outputs));
}

/// The same by the first of several records that the cache has. `gone`: the temporary outputs of
/// one of them are.
Result<std::optional<std::vector<fileset::Fileset>>> look_up_any(
    Context& context, fileset::ObjectStore& cache, const flow::TaskSpec& spec,
    std::span<const std::string> records, const flow::Step& step, bool& gone,
    flow::Metrics& metrics) {
  for (const auto& each : records) {
    BERTH_ASSIGN(auto found, look_up(context, cache, spec, each, step, gone, metrics));
    if (found) return found;
  }
  return std::nullopt;
}

Result<TaskPlan> planned(Context& context, std::span<const store::RunRecord> runs,
                         const FlowProgram& program, const flow::Step& step,
                         const flow::TaskSpec& spec, const std::string& depends) {
  TaskPlan plan{.name = spec.name, .command = {}, .because = {}};
  if (step.forced) plan.because.emplace_back("it is forced");
  if (step.out.empty()) plan.because.emplace_back("a step without outputs runs each time");
  if (!plan.because.empty()) return plan;
  const auto earlier = earlier_task(context, runs, program.name, {}, spec.name);
  if (!earlier) {
    plan.because.emplace_back("no earlier run of the flow has this task");
    return plan;
  }
  BERTH_ASSIGN(plan.because, changes_since(*earlier, depends));
  if (plan.because.empty())
    plan.because.push_back(
        fmt::format("nothing has changed since {}, but the cache has no result", earlier->run));
  return plan;
}

/// Notes which outputs of a task would be refused: their places are protected or were edited, and
/// do not hold what was `found` in the cache.
void add_refused(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                 const flow::Words& paths, const std::string& directory, bool protect,
                 const std::optional<std::vector<fileset::Fileset>>& found, StepPlan& step) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (is_url(paths[i])) continue;
    const auto place = behind_links(env, place_in(directory, paths[i]));
    if (!place) {
      step.refused.push_back(place.error().message);
      continue;
    }
    const bool is_kept = protect && is_protected(env, *place);
    const Status unedited = check_unedited(env, cache, placed, *place);
    if (!is_kept && unedited) continue;
    if (found)
      if (const auto there = cache.capture(*place, fileset::Expect::stored);
          there && there->fileset == (*found)[i])
        continue;
    if (is_kept) step.overwrites.push_back(*place);
    step.refused.push_back(is_kept ? fmt::format("{}: {}", *place, kProtected)
                                   : unedited.error().message);
  }
}

/// Tasks whose temporary outputs are gone run again where another one, which runs, reads them.
Status make_again(const flow::Graph& graph, flow::TaskIndex reader,
                  std::unordered_set<std::int64_t>& gone, std::vector<StepPlan>& steps) {
  std::vector<flow::TaskIndex> readers{reader};
  while (!readers.empty()) {
    const flow::TaskIndex now = readers.back();
    readers.pop_back();
    BERTH_ASSIGN(const auto reading, graph.spec(now));
    std::vector<flow::TaskIndex> producers;
    for (const auto& input : reading.inputs) producers.push_back(input.producer);
    const auto of = static_cast<std::size_t>(graph.step_of(now).value);
    for (const auto need : graph.flow().steps[of].needs)
      if (const auto tasks = graph.tasks(need))
        for (std::int64_t i = 0; i < tasks->count; ++i)
          producers.push_back({tasks->first.value + i});
    for (const auto producer : producers) {
      if (gone.erase(producer.value) == 0) continue;
      BERTH_ASSIGN(const auto spec, graph.spec(producer));
      StepPlan& step = steps[static_cast<std::size_t>(graph.step_of(producer).value)];
      --step.cached;
      ++step.runs;
      step.tasks.push_back(
          {spec.name,
           command_text(spec.command),
           {fmt::format("its output was temporary, and {} needs it", reading.name)}});
      readers.push_back(producer);
    }
  }
  return {};
}

/// A task that runs, for what it takes in is not here.
Status plan_fetching(const flow::Graph& graph, flow::TaskIndex task,
                     std::vector<std::string> because, StepPlan& step) {
  BERTH_ASSIGN(const auto spec, graph.spec(task, 1));
  step.tasks.push_back({spec.name, command_text(spec.command), std::move(because)});
  ++step.runs;
  return {};
}

/// What waits for other tasks; `settled` are those that were looked at.
void count_later(os::Env& env, fileset::ObjectStore& cache, PlacedOutputs& placed,
                 const flow::Graph& graph, const std::string& directory, bool overwrite,
                 const std::unordered_set<std::int64_t>& settled, std::vector<StepPlan>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto range = graph.tasks({static_cast<std::int64_t>(i)});
    steps[i].unfolded = range.has_value();
    std::int64_t wanted = 0;
    for (std::int64_t at = 0; range && at < range->count; ++at) {
      const flow::TaskIndex task{range->first.value + at};
      wanted += graph.wanted(task) ? 1 : 0;
      if (!overwrite && graph.wanted(task) && !settled.contains(task.value))
        add_refused(env, cache, placed, graph.output_paths(task), directory,
                    graph.flow().steps[i].protect, {}, steps[i]);
    }
    if (range) steps[i].later = wanted - steps[i].cached - steps[i].runs - steps[i].skipped;
  }
}

std::vector<StepPlan> plans_of(const flow::Flow& flow) {
  std::vector<StepPlan> steps;
  for (const auto& step : flow.steps)
    steps.push_back({.name = step.name,
                     .resources = step.resources,
                     .selection = step.selection,
                     .asks = flow::request_notes(step)});
  return steps;
}

/// A world in which conditions can read what is in the cache, which outlives it.
flow::World world_with(Context& context, FlowProgram& program, const std::string& directory,
                       fileset::ObjectStore& cache) {
  auto world = world_of(*context.env, directory, program.answers);
  world.content = [&cache](const fileset::Entry& file) {
    return cache.content(file, flow::kMostJsonBytes);
  };
  return world;
}

}  // namespace

Status check_protected(Context& context, FlowProgram& program, const std::string& directory) {
  if (program.overwrite) return {};
  BERTH_ASSIGN(const auto flow, read_flow(program));
  if (std::ranges::none_of(flow.steps, &flow::Step::protect)) return {};
  BERTH_ASSIGN(const auto steps, plan(context, program, directory));
  for (const auto& step : steps)
    if (!step.overwrites.empty())
      return fail(ErrorKind::exists, "{}: step {}: {}: {}", program.file, step.name,
                  step.overwrites.front(), kProtected);
  return {};
}

Result<std::vector<StepPlan>> plan(Context& context, FlowProgram& program,
                                   const std::string& directory) {
  BERTH_ASSIGN(auto flow, read_flow(program));
  BERTH_ASSIGN(auto cache, open_cache(context));
  Inputs inputs(*context.env, cache, directory, context.cloud);
  UrlLooks urls(context, cache);
  BERTH_ASSIGN(const auto runs, context.store->runs());
  PlacedOutputs placed(cache.directory());
  auto steps = plans_of(flow);
  BERTH_ASSIGN(auto graph,
               flow::Graph::build(std::move(flow), world_with(context, program, directory, cache)));
  Dependencies dependencies(*context.env, *context.store, directory,
                            [&](const std::string& path) { return graph.writer_of(path); });
  std::unordered_set<std::int64_t> gone;     // tasks whose temporary outputs are
  std::unordered_set<std::int64_t> settled;  // tasks that were looked at
  for (;;) {
    BERTH_ASSIGN(const auto ready, graph.take_ready());
    if (ready.run.empty() && ready.skipped.empty() && ready.taken.empty()) break;
    for (const auto task : ready.taken) BERTH_TRY(take_outputs(graph, inputs, task));
    for (const auto task : ready.skipped) {
      ++steps[static_cast<std::size_t>(graph.step_of(task).value)].skipped;
      settled.insert(task.value);
    }
    for (const auto task : ready.run) {
      StepPlan& step = steps[static_cast<std::size_t>(graph.step_of(task).value)];
      const auto told = graph.spec(task);
      if (!told) {
        ++step.runs;
        step.tasks.push_back({graph.name(task), "", {told.error().message}});
        settled.insert(task.value);
        continue;
      }
      const flow::TaskSpec& spec = *told;
      std::vector<std::string> because;
      BERTH_ASSIGN(const std::string declared, depends_of(inputs, urls, spec, step, because));
      if (!because.empty()) {
        BERTH_TRY(plan_fetching(graph, task, std::move(because), step));
        BERTH_TRY(make_again(graph, task, gone, steps));
        continue;
      }
      std::vector<std::string> records{declared};
      if (!spec.depfile.empty()) {
        BERTH_ASSIGN(records, dependencies.records(to_hex(sha256(lists_of(declared))), declared));
      }
      const auto& of = graph.flow().steps[static_cast<std::size_t>(graph.step_of(task).value)];
      std::optional<std::vector<fileset::Fileset>> found;
      flow::Metrics metrics;
      bool is_gone = false;
      if (reads(program.cache) && !of.forced) {
        BERTH_ASSIGN(found, look_up_any(context, cache, spec, records, of, is_gone, metrics));
      }
      if (is_gone) gone.insert(task.value);
      if (!found) {
        const std::string& depends = records.empty() ? declared : records.front();
        BERTH_ASSIGN(step.tasks.emplace_back(), planned(context, runs, program, of, spec, depends));
        BERTH_ASSIGN(const auto first, graph.spec(task, 1));
        step.tasks.back().command = command_text(first.command);
        BERTH_TRY(make_again(graph, task, gone, steps));
      }
      ++(found ? step.cached : step.runs);
      if (!program.overwrite)
        add_refused(*context.env, cache, placed, graph.output_paths(task), directory, of.protect,
                    found, step);
      settled.insert(task.value);
      if (found) BERTH_TRY(graph.finish(task, *std::move(found), std::move(metrics)));
    }
  }
  count_later(*context.env, cache, placed, graph, directory, program.overwrite, settled, steps);
  return steps;
}

}  // namespace berth::run
