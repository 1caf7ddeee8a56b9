// berth importance: which parameters of a search decide its goal.
#include <cmath>

#include "berth/base/text.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/analysis.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

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

std::string importance_json(const engine::ImportanceReport& report) {
  const experiment::Importances& found = report.found;
  std::string parameters;
  for (const auto& each : found.parameters)
    parameters += fmt::format(
        "{}{{\"name\":{},\"share\":{:.4f},\"deviation\":{:.4f},\"trials\":{},\"values\":{}}}",
        parameters.empty() ? "" : ",", json_quote(each.parameter), each.share, each.deviation,
        each.trials, each.values);
  return fmt::format(
      "{{\"run\":{},\"metric\":{},\"measure\":\"fanova\",\"trials\":{},\"predicted\":{:.4f},"
      "\"together\":{:.4f},\"parameters\":[{}],\"because\":{},\"version\":1}}\n",
      json_quote(report.run), json_quote(report.metric), found.trials, found.predicted,
      found.together, parameters, json_quote(report.because));
}

void print_importances(const engine::ImportanceReport& report) {
  const experiment::Importances& found = report.found;
  render::Table table({"parameter", "share", "±", "trials", ""});
  const auto percent = [](double part) { return fmt::format("{:.1f} %", 100 * part); };
  for (const auto& each : found.parameters)
    table.add({each.parameter, percent(each.share), percent(each.deviation),
               fmt::format("{}", each.trials),
               each.values == 1 ? "one value"
                                : std::string(static_cast<std::size_t>(
                                                  std::lround(30 * std::min(1.0, each.share))),
                                              '#')});
  print(table);
  print(fmt::format("{} are due to combinations of parameters\n", percent(found.together)));
  print(fmt::format(
      "share of variance of {} (fANOVA, a forest of 64 trees on {} trials{}); it "
      "predicts {} of the variance of trials that it was not fitted to\n",
      report.metric, found.trials,
      report.left_out > 0 ? fmt::format("; {} without a score are left out", report.left_out) : "",
      percent(std::max(0.0, found.predicted))));
  if (found.predicted < kPredictsLittle)
    print_error(fmt::format("note: the parameters predict {} poorly: do not trust these shares\n",
                            report.metric));
}

Result<int> show_importance(os::Env& env, const ImportanceOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto report, engine::importance_of(context, options.run, options.metric));
  const bool is_known = report.because.empty();
  if (!is_known && !options.json)
    return fail(ErrorKind::busy, "{}: {}: {}", report.run, report.metric, report.because);
  if (options.json)
    print(importance_json(report));
  else
    print_importances(report);
  return is_known ? 0 : exit_code(ErrorKind::busy);
}

}  // namespace

Command importance_command() {
  return command("importance", "Rank parameters by their effect on the goal", show_importance);
}

}  // namespace berth::cli
