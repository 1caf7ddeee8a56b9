// berth importance: which parameters of a search decide its goal.
#include "berth/experiment/importance.h"
#include "berth/experiment/population.h"

#include <cmath>

#include "berth/base/text.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/shared_options.h"
#include "berth/cli/table.h"
#include "berth/cli/trials_view.h"
#include "berth/run/find_run.h"

namespace berth::cli {
namespace {

constexpr std::uint64_t kSeed = 1;
/// Below this the forest knows little more than the mean.
constexpr double kPredictsLittle = 0.3;

struct ImportanceOptions {
  bool json = false;
  std::string run, metric;

  void add_to(Options& options) {
    options.json(json);
    add_run(options, run);
    options.value("--metric", metric, "Explain this metric (default: the metric of the goal)")
        .named("NAME");
    options.example("berth importance digits-3");
  }
};

/// `because`: why nothing is known; "": it is.
std::string importance_json(const std::string& run, const std::string& metric,
                            const experiment::Importances& found, const std::string& because = {}) {
  std::string parameters;
  for (const auto& each : found.parameters)
    parameters += fmt::format(
        "{}{{\"name\":{},\"share\":{:.4f},\"deviation\":{:.4f},\"trials\":{},\"values\":{}}}",
        parameters.empty() ? "" : ",", json_quote(each.parameter), each.share, each.deviation,
        each.trials, each.values);
  return fmt::format(
      "{{\"run\":{},\"metric\":{},\"measure\":\"fanova\",\"trials\":{},\"predicted\":{:.4f},"
      "\"together\":{:.4f},\"parameters\":[{}],\"because\":{},\"version\":1}}\n",
      json_quote(run), json_quote(metric), found.trials, found.predicted, found.together,
      parameters, json_quote(because));
}

void print_importances(const std::string& metric, const experiment::Importances& found,
                       std::size_t without) {
  Table table({"parameter", "share", "±", "trials", ""});
  const auto percent = [](double part) { return fmt::format("{:.1f} %", 100 * part); };
  for (const auto& each : found.parameters)
    table.add({each.parameter, percent(each.share), percent(each.deviation),
               fmt::format("{}", each.trials),
               each.values == 1 ? "one value"
                                : std::string(static_cast<std::size_t>(
                                                  std::lround(30 * std::min(1.0, each.share))),
                                              '#')});
  print(table.text());
  print(fmt::format("{} are due to combinations of parameters\n", percent(found.together)));
  print(
      fmt::format("share of variance of {} (fANOVA, a forest of 64 trees on {} trials{}); it "
                  "predicts {} of the variance of trials that it was not fitted to\n",
                  metric, found.trials,
                  without > 0 ? fmt::format("; {} without a score are left out", without) : "",
                  percent(std::max(0.0, found.predicted))));
  if (found.predicted < kPredictsLittle)
    print_error(
        fmt::format("note: the parameters predict {} poorly: do not trust these shares\n", metric));
}

Result<int> show_importance(os::Env& env, const ImportanceOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  BERTH_ASSIGN(const auto program, program_of(record));
  if (!program.goal && options.metric.empty())
    return fail(ErrorKind::invalid, "{} has no goal: name the metric with --metric NAME",
                record.name);
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  const std::string metric = options.metric.empty() ? program.goal->metric : options.metric;
  std::vector<experiment::ScoredTrial> trials;
  for (const auto& task : tasks) {
    if (task.state != store::TaskState::done || task.label == experiment::kBestAgain) continue;
    const auto score =
        options.metric.empty() ? score_of(task, program) : metric_of(task, options.metric);
    if (!score || !std::isfinite(*score)) continue;
    trials.push_back({task.params, *score});
    if (program.search.method == experiment::Search::Method::pbt)
      std::erase_if(trials.back().params,
                    [](const auto& value) { return value.first == experiment::kParent; });
  }
  const auto found = experiment::importances(trials, kSeed);
  if (!found && options.json && found.error().kind == ErrorKind::busy) {
    print(importance_json(record.name, metric, {.trials = std::ssize(trials)},
                          found.error().message));
    return exit_code(ErrorKind::busy);
  }
  if (!found)
    return fail(found.error().kind, "{}: {}: {}", record.name, metric, found.error().message);
  if (options.json)
    print(importance_json(record.name, metric, *found));
  else
    print_importances(metric, *found, tasks.size() - trials.size());
  return 0;
}

}  // namespace

Command importance_command() {
  return command("importance", "Rank parameters by their effect on the goal", show_importance);
}

}  // namespace berth::cli
