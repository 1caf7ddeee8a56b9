// berth importance: which parameters of a search decide its goal.
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/context.h"
#include "berth/render/runs/analysis.h"

namespace berth::cli {
namespace {

/// Below this share of the variance, the model predicts hardly better than the mean.
constexpr double kPredictsLittle = 0.3;

struct ImportanceOptions {
  Output output;
  std::string run, metric;

  void add_to(Options& options) {
    output.add_to(options);
    add_run(options, run);
    options.value("--metric", metric, "Explain this metric (default: the metric of the goal)")
        .named("NAME");
    options.example("berth importance digits-3");
  }
};

Result<int> show_importance(os::Env& env, const ImportanceOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto report, engine::importance_of(context, options.run, options.metric));
  const bool is_known = report.because.empty();
  if (!is_known && !options.output.is_json())
    return fail(ErrorKind::busy, "{}: {}: {}", report.run, report.metric, report.because);
  options.output.print(report);
  if (is_known && report.found.predicted < kPredictsLittle)
    options.output.hint(fmt::format(
        "note: the parameters predict {} poorly: do not trust these shares\n", report.metric));
  return is_known ? 0 : exit_code(ErrorKind::busy);
}

}  // namespace

Command importance_command() {
  return command("importance", "Rank parameters by their effect on the goal", show_importance);
}

}  // namespace berth::cli
