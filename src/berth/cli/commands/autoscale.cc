// berth autoscale: its options, which berth hands over to berth-server as they are.
#include "berth/cli/commands/autoscale.h"

#include "berth/cli/commands/serve.h"
#include "berth/cli/commands/shared_options.h"

namespace berth::cli {

void AutoscaleOptions::add_to(Options& options) {
  options.whole_line(line);
  output.add_to(options);
  add_fleet(options, path);
  options.group("Measurements");
  options
      .value("--prometheus", prometheus, "Prometheus server that scrapes the fleet's vLLM servers")
      .named("URL");
  options
      .value("--prometheus-token-file", prometheus_token_file, "File with the token of that server")
      .named("FILE");
  options
      .list("--select", selects,
            "Metrics of a server, such as 'chat=model_name=\"llama\",namespace=\"a\"' (default: by "
            "the name of its model)")
      .named("SERVER=LABELS")
      .one_at_a_time();
  options.value("--window", window, "Measure rates over this time (default: 1m)").named("DURATION");
  options
      .value("--trace", trace,
             "Without Prometheus: simulate the decisions for these requests (CSV)")
      .named("FILE")
      .excludes("--prometheus");
  options.value("--server", server, "With --trace: server that gets the requests").named("NAME");
  options.group("Decisions");
  options.value("--interval", interval, "Time between decisions (default: 30s)").named("DURATION");
  options.value("--startup", startup, "Time until a new replica serves (default: 3m)")
      .named("DURATION");
  options.value("--hold", hold, "Remove replicas unneeded for this long (default: 10m)")
      .named("DURATION");
  options.value("--headroom", headroom, "Plan for this fraction more than expected (default: 0)")
      .named("FRACTION");
  options.value("--max-up", most_up, "Add at most N replicas at a time (default: 0, no limit)")
      .between(0, 1'000'000);
  options
      .value("--max-down", most_down,
             "Remove at most N replicas at a time (default: 1; 0: no limit)")
      .between(0, 1'000'000);
  options
      .value("--max-changes", most_changes,
             "Add and remove at most N replicas of a server per hour (default: 0, no limit)")
      .between(0, 1'000'000);
  add_percentiles(options, percentiles);
  options.flag("--once", once, "Decide once and exit; exit with 1 if something failed");
  options.group("Actions");
  options.flag("--apply", apply,
               "Publish desired replicas and call the hook (default: only give advice)");
  options.value("--hook", hook, "With --apply: run this with sh when replicas change")
      .named("COMMAND");
  options.value("--namespace", name_space, "Namespace label of the metrics (default: default)")
      .named("NAME");
  options.flag("--old-names", old_names, "Publish the metrics as inferno_... too");
  options.group("Access");
  options.value("--listen", listen, "Serve /metrics here (default: 127.0.0.1:8322)")
      .named("HOST:PORT");
  access.add_to(options);
  options.footer(
      "With --apply, HPA and KEDA find wva_desired_replicas at /metrics. The hook gets\n"
      "BERTH_SERVER, BERTH_REPLICAS, BERTH_REPLICAS_BEFORE, BERTH_ACCELERATOR, BERTH_NAMESPACE\n"
      "and BERTH_REASON. 'berth why autoscale/SERVER' explains decisions.\n"
      "\n"
      "Examples:\n"
      "  berth autoscale fleet.json --prometheus http://127.0.0.1:9090\n"
      "  berth autoscale fleet.json --prometheus http://127.0.0.1:9090 --apply \\\n"
      "      --hook 'kubectl scale \"deploy/$BERTH_SERVER\" --replicas=$BERTH_REPLICAS'\n"
      "  berth autoscale fleet.json --server chat --trace requests.csv");
}

Command autoscale_command(Result<int> (*autoscale)(os::Env&, const AutoscaleOptions&)) {
  return command("autoscale", "Scale a fleet's replicas by live Prometheus metrics", autoscale);
}

Command autoscale_command() {
  return autoscale_command(become_server<AutoscaleOptions>);
}

}  // namespace berth::cli
