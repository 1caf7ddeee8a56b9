// berth metrics: runs, their tasks and this machine as Prometheus scrapes them.
#include "berth/render/machines/metrics.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"

namespace berth::cli {
namespace {

struct MetricsOptions {
  std::string file;

  void add_to(Options& options) {
    options.value("-o,--output", file, "Replace this file atomically (default: standard output)")
        .named("FILE");
    options.footer(
        "Example, every minute by a timer, for node_exporter's textfile collector:\n"
        "  berth metrics -o /var/lib/prometheus/node-exporter/berth.prom");
  }
};

Result<int> metrics(os::Env& env, const MetricsOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto metrics, engine::metrics_of(context));
  BERTH_TRY(print_to(env, options.file, render::to_text(metrics)));
  return 0;
}

}  // namespace

Command metrics_command() {
  return command("metrics", "Print metrics of runs and this machine for Prometheus", metrics);
}

}  // namespace berth::cli
