// berth compare: the results of several runs next to each other, by one metric.
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/context.h"
#include "berth/render/runs/comparison.h"

namespace berth::cli {
namespace {

struct CompareOptions {
  Output output;
  std::vector<std::string> runs;
  std::string metric, direction;

  void add_to(Options& options) {
    output.add_to(options);
    add_runs(options, runs, "Two or more runs, such as digits-3 digits-4").count(2, 64);
    options.value("--metric", metric, "Compare this metric (default: the metric of the goal)")
        .named("NAME");
    options.value("--direction", direction, "Best is max or min (default: as in the goal)")
        .named("DIRECTION")
        .one_of({"max", "min"});
    options.example("berth compare digits-3 digits-4 --metric loss --direction min");
  }
};

Result<int> compare(os::Env& env, const CompareOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  std::optional<bool> maximize;
  if (!options.direction.empty()) maximize = options.direction == "max";
  return options.output.print_or_fail(
      engine::compare(context, options.runs, options.metric, maximize));
}

}  // namespace

Command compare_command() {
  return command("compare", "Compare the results of runs", compare);
}

}  // namespace berth::cli
