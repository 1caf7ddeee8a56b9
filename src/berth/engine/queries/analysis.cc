#include "berth/engine/queries/analysis.h"

#include <cmath>

#include "berth/base/text.h"
#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/trials.h"
#include "berth/experiment/proposers/population.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/state/find_run.h"

namespace berth::engine {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kLargestAdvisedFile = 64U << 20;
constexpr std::string_view kAllTrials = "trials";

std::vector<experiment::ScoredTrial> scored_trials(const std::vector<store::TaskRecord>& tasks,
                                                   const experiment::Program& program,
                                                   const std::string& metric) {
  std::vector<experiment::ScoredTrial> trials;
  for (const auto& task : tasks) {
    if (task.state != store::TaskState::done || task.label == experiment::kBestAgain) continue;
    const auto score = metric.empty() ? score_of(task, program) : metric_of(task, metric);
    if (!score || !std::isfinite(*score)) continue;
    trials.push_back({task.params, *score});
    if (program.search.method == experiment::Search::Method::pbt)
      std::erase_if(trials.back().params,
                    [](const auto& value) { return value.first == experiment::kParent; });
  }
  return trials;
}

struct Advised {
  std::string name;  // of its runs, without their numbers
  std::vector<std::string> steps;
  bool is_flow = false;
};

std::vector<std::string> step_names(const flow::Flow& flow) {
  std::vector<std::string> names;
  for (const auto& step : flow.steps) names.push_back(step.name);
  return names;
}

Result<Advised> find_advised(run::Context& context, const std::string& of) {
  os::Env& env = *context.env;
  if (const auto text = env.read_file(of, kLargestAdvisedFile)) {
    if (run::is_flow(*text)) {
      run::FlowProgram program;
      program.text = *text;
      program.file = of;
      const auto folder = env.real_path(of);
      BERTH_TRY(
          run::take_parts(env, folder ? folder->substr(0, folder->rfind('/')) : ".", program));
      BERTH_ASSIGN(const auto flow, run::read_flow(program));
      return Advised{flow.name, step_names(flow), true};
    }
    BERTH_ASSIGN(const auto program, experiment::read_program(*text, of));
    return Advised{program.name, {std::string(kAllTrials)}, false};
  }
  const auto record = run::find_run(context, of);
  if (!record && record.error().kind == ErrorKind::not_found)
    return fail(ErrorKind::not_found, "{}: no such file, and {}", clip(of), record.error().message);
  if (!record) return std::unexpected(record.error());
  const std::string name = record->name.substr(0, record->name.rfind('-'));
  if (record->kind != "flow") return Advised{name, {std::string(kAllTrials)}, false};
  BERTH_ASSIGN(const auto flow, flow_of(*record));
  return Advised{name, step_names(flow), true};
}

}  // namespace

Result<ImportanceReport> importance_of(run::Context& context, const std::string& run,
                                       const std::string& metric) {
  BERTH_ASSIGN(const auto record, run::find_run(context, run));
  BERTH_ASSIGN(const auto program, program_of(record));
  if (!program.goal && metric.empty())
    return fail(ErrorKind::invalid, "{} has no goal: name the metric with --metric NAME", run);
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  const auto trials = scored_trials(tasks, program, metric);
  ImportanceReport report{.run = record.name,
                          .metric = metric.empty() ? program.goal->metric : metric,
                          .found = {.trials = std::ssize(trials)},
                          .left_out = tasks.size() - trials.size()};
  auto found = experiment::importances(trials, kSeed);
  if (found)
    report.found = *std::move(found);
  else if (found.error().kind == ErrorKind::busy)
    report.because = found.error().message;
  else
    return std::unexpected(within(record.name + ": " + report.metric, std::move(found).error()));
  return report;
}

Result<AdviceReport> advice_for(run::Context& context, const std::string& of) {
  BERTH_ASSIGN(const auto advised, find_advised(context, of));
  AdviceReport report{.name = advised.name, .steps = {}};
  BERTH_ASSIGN(report.steps, run::advise(context, advised.name, advised.steps, advised.is_flow));
  return report;
}

}  // namespace berth::engine
