// berth trace: a run as a timeline.
#include "berth/engine/queries/trace.h"

#include "berth/cli/commands/shared_options.h"
#include "berth/cli/print.h"

namespace berth::cli {
namespace {

struct TraceOptions {
  std::string run;

  void add_to(Options& options) {
    options.always_json();
    add_run(options, run);
    options.example("berth trace digits-3 > digits-3.json");
  }
};

Result<int> trace(os::Env& env, const TraceOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto text, engine::trace_of(context, options.run));
  print(text);
  return 0;
}

}  // namespace

Command trace_command() {
  return command("trace", "Export the timeline of a run for ui.perfetto.dev", trace);
}

}  // namespace berth::cli
