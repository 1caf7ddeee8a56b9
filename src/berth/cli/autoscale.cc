// berth autoscale: its options, which berth hands over to berth-server as they are.
#include "berth/cli/autoscale.h"

#include "berth/cli/serve.h"
#include "berth/cli/shared_options.h"

namespace berth::cli {
namespace {

Result<int> hand_over(os::Env& env, const AutoscaleOptions& options) {
  return become(env, "berth-server", options.line);
}

}  // namespace

void AutoscaleOptions::add_to(Options& options) {
  options.whole_line(line);
  options.json(json);
  options.value("PATH", path, "a fleet document (JSON), or a directory of them").required();
  options.value("--prometheus", prometheus, "the Prometheus server that scrapes the fleet's vLLMs")
      .named("URL");
  options.value("--prometheus-token-file", prometheus_token_file, "holds the token that it wants")
      .named("FILE");
  options
      .list("--select", selects,
            "which metrics are a server's, such as 'chat=model_name=\"llama\",namespace=\"a\"' "
            "(default: those of its model's name)")
      .named("SERVER=LABELS")
      .one_at_a_time();
  options.value("--interval", interval, "between two decisions (default 30s)").named("TIME");
  options.value("--window", window, "rates are measured over so long (default 1m)").named("TIME");
  options.value("--startup", startup, "until a new replica serves (default 3m)").named("TIME");
  options.value("--hold", hold, "give up what nobody needed for so long (default 10m)")
      .named("TIME");
  options.value("--headroom", headroom, "plan for so much more than is expected (default 0)")
      .named("PART");
  options.value("--max-up", most_up, "replicas that a server gets at a time (default 0: any)")
      .between(0, 1'000'000);
  options.value("--max-down", most_down, "and that it gives up (default 1; 0: any)")
      .between(0, 1'000'000);
  options
      .value("--max-changes", most_changes,
             "replicas that a server gets and gives up in an hour (default 0: any)")
      .between(0, 1'000'000);
  options.flag("--apply", apply, "publish desired replicas, and call the hook; else give advice");
  options.value("--hook", hook, "with --apply: run by sh where the replicas change")
      .named("COMMAND");
  options.value("--namespace", name_space, "label of the metrics (default: default)").named("NAME");
  options.flag("--old-names", old_names, "metrics under inferno_… too");
  add_percentiles(options, percentiles);
  options.flag("--once", once, "decide once, and end; exit 1 where something failed");
  options
      .value("--trace", trace,
             "without Prometheus: what would have been done with these requests, simulated")
      .named("FILE")
      .excludes("--prometheus");
  options.value("--server", server, "with --trace: whose requests they are").named("NAME");
  options.value("--listen", listen, "where /metrics is: HOST:PORT (default 127.0.0.1:8322)")
      .named("HOST:PORT");
  access.add_to(options);
  options.footer(
      "It gives advice unless told to --apply: then HPA and KEDA find wva_desired_replicas at\n"
      "/metrics, and the hook has BERTH_SERVER, BERTH_REPLICAS, BERTH_REPLICAS_BEFORE,\n"
      "BERTH_ACCELERATOR, BERTH_NAMESPACE and BERTH_REASON. berth why autoscale/SERVER tells of\n"
      "decisions.\n"
      "Examples:\n"
      "  berth autoscale fleet.json --prometheus http://127.0.0.1:9090\n"
      "  berth autoscale fleet.json --prometheus http://127.0.0.1:9090 --apply \\\n"
      "      --hook 'kubectl scale \"deploy/$BERTH_SERVER\" --replicas=$BERTH_REPLICAS'\n"
      "  berth autoscale fleet.json --server chat --trace requests.csv");
}

Command autoscale_command(Result<int> (*autoscale)(os::Env&, const AutoscaleOptions&)) {
  return command("autoscale", "keep a fleet's replicas right, by what Prometheus measures",
                 autoscale);
}

Command autoscale_command() {
  return autoscale_command(hand_over);
}

std::string autoscale_record(const std::string& state_directory) {
  return state_directory + "/autoscale.jsonl";
}

}  // namespace berth::cli
