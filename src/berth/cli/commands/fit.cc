// berth fit: performance parameters from what benchmark tools measured.
#include "berth/engine/fleets/fit.h"
#include "berth/cli/output.h"
#include "berth/render/fleets/fit.h"

namespace berth::cli {
namespace {

struct FitCommandOptions {
  Output output;
  engine::FitRequest request;
  bool check = false;

  void add_to(Options& options) {
    auto& [files, held_out, llm, accelerator, write, metrics, all] = request;
    output.add_to(options);
    options.list("FILE", files,
                 "Results of vLLM's benchmark, sglang.bench_serving, guidellm, genai-perf, aiperf, "
                 "llmperf or trtllm-bench, a table of iterations, or a directory of them");
    options
        .value("--accelerator", accelerator,
               "Accelerator that was measured, or the one to fit if there are several")
        .named("NAME");
    options.value("--llm", llm, "Name of the model, or the one to fit if there are several")
        .named("NAME");
    options.flag("--all", all, "Keep points with errors, few requests or cached prompts");
    options
        .value("-o,--write", write,
               "Write perfParms into this fleet document; all other text stays as it is")
        .named("MODEL.json");
    options.group("Check the fit");
    options.flag("--check", check, "Compare each measured point with the fit, with a chart");
    options.list("--held-out", held_out, "Compare the fit with this file, which is not fitted")
        .one_at_a_time()
        .named("FILE");
    options.group("Fit live servers");
    options
        .value("--prometheus", metrics.url,
               "Read vLLM metrics from this Prometheus server instead of files")
        .named("URL")
        .excludes("FILE");
    options
        .value("--from", metrics.from, "Start of the period: 2026-11-21T05:04:03Z, or an age (2h)")
        .named("TIME");
    options.value("--to", metrics.to, "End of the period (default: now)").named("TIME");
    options
        .value("--window", metrics.window,
               "Make one operating point per server and window of this length (default: 5m)")
        .named("DURATION");
    options.footer(
        "Examples:\n"
        "  berth fit results/ --accelerator H100 --check\n"
        "  berth fit qps1.json qps4.json --held-out qps16.json\n"
        "  berth fit benchmarks.json --llm llama --accelerator H100 -o model-data.json\n"
        "  berth fit --prometheus http://prometheus:9090 --from 6h --accelerator H100");
  }
};

Result<int> fit(os::Env& env, const FitCommandOptions& given) {
  BERTH_ASSIGN(auto fits, engine::fit_performance(env, given.request, print_notes, print_error));
  fits.is_checked = given.check;
  given.output.print(fits);
  return 0;
}

}  // namespace

Command fit_command() {
  return command("fit", "Fit performance parameters of a model to benchmarks", fit);
}

}  // namespace berth::cli
