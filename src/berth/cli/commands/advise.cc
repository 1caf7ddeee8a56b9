// berth advise: which resources the steps of a flow should request, judged by what they used.
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/context.h"
#include "berth/render/runs/analysis.h"

namespace berth::cli {
namespace {

struct AdviseOptions {
  Output output;
  std::string of;

  void add_to(Options& options) {
    output.add_to(options);
    add_run(options, of, "FILE|RUN", "Experiment or flow, or a run of it");
    options.footer(
        "A step with mem: auto (or cpu, or timeout) gets these values automatically.\n"
        "\n"
        "Examples:\n"
        "  berth advise count.yaml   from the latest 20 runs of this file\n"
        "  berth advise count-7      from the runs of this run's file");
  }
};

Result<int> advise_of(os::Env& env, const AdviseOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  return options.output.print_or_fail(engine::advice_for(context, options.of));
}

}  // namespace

Command advise_command() {
  return command("advise", "Suggest resources for the steps of a flow from past use", advise_of);
}

}  // namespace berth::cli
