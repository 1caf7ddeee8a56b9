// berth simulate: the latencies of a fleet, request by request, next to those of its plan.
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/fleets/fleet_simulation.h"
#include "berth/render/fleets/simulation.h"

namespace berth::cli {
namespace {

struct SimulateOptions {
  Output output;
  std::string path;
  engine::SimulationChoices choices;

  void add_to(Options& options) {
    auto& [servers, current, at_load, tokens_only, routing, percentiles, trace, in_cv, out_cv,
           arrival_cv, requests, replicas, seed] = choices;
    output.add_to(options);
    add_fleet(options, path);
    options.group("What to simulate");
    options.list("--server", servers, "Simulate only this server; may be repeated").named("NAME");
    options.flag("--current", current, "Simulate the current allocation instead of a plan");
    options
        .value("--replicas", replicas, "Give each server N replicas instead of the planned number")
        .between(1, fleet::kMostSimulatedReplicas);
    options
        .value("--routing", routing,
               "Choose replicas by random (default), round-robin or least-loaded")
        .named("POLICY")
        .one_of({"random", "round-robin", "least-loaded"});
    add_percentiles(options, percentiles).excludes("--current");
    options.group("Requests");
    options.value("--trace", trace, "Read requests from a CSV file: seconds,in_tokens,out_tokens")
        .named("FILE");
    options.flag("--at-load", at_load, "Stretch the times of the trace to the server's load");
    options
        .flag("--tokens-only", tokens_only,
              "Draw arrivals at the server's load and take only tokens from the trace")
        .excludes("--at-load");
    options.value("--requests", requests, "Requests per server (default: 200000)")
        .between(engine::kFewestRequests, engine::kMostRequests);
    options.value("--seed", seed, "Seed of the random numbers (default: 1)").between(0, INT32_MAX);
    options
        .value("--in-cv", in_cv,
               "Standard deviation / mean of input tokens (default: as in the load)")
        .named("CV")
        .excludes("--trace");
    options.value("--out-cv", out_cv, "Standard deviation / mean of output tokens")
        .named("CV")
        .excludes("--trace");
    options
        .value("--arrival-cv", arrival_cv,
               "Standard deviation / mean of times between arrivals (1: Poisson, 0: regular)")
        .named("CV");
    options.footer(
        "Examples:\n"
        "  berth simulate examples/fleet --out-cv 1\n"
        "  berth simulate examples/fleet --server assistant --routing least-loaded\n"
        "  berth simulate examples/fleet --server assistant --trace requests.csv --replicas 4");
  }
};

Result<int> simulate(os::Env& env, const SimulateOptions& given) {
  BERTH_ASSIGN(auto request, engine::simulation_request(given.choices));
  BERTH_ASSIGN(const auto system, engine::read_fleet(env, given.path, print_notes));
  engine::note_missing(system, print_notes);
  return given.output.print_or_fail(
      engine::simulate_fleet(env, system, std::move(request),
                             engine::planning_execution(given.choices.percentiles), print_notes));
}

}  // namespace

Command simulate_command() {
  return command("simulate", "Simulate the servers of a fleet request by request", simulate);
}

}  // namespace berth::cli
