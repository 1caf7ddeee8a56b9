// berth simulate: the latencies of a fleet, request by request, next to those of its plan.
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/commands/fleet_input.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/fleets/fleet_simulation.h"
#include "berth/render/fleets/simulation.h"

namespace berth::cli {
namespace {

constexpr int kFewestRequests = 1000, kMostOfAServer = 20'000'000;

struct SimulateOptions {
  Output output;
  bool current = false, at_load = false, tokens_only = false;
  std::string path, routing = "random", percentiles = "simulated";
  std::optional<std::string> trace, in_cv, out_cv, arrival_cv;  // as written
  std::vector<std::string> servers;
  int requests = 0, seed = 1, replicas = 0;  // 0: not given

  void add_to(Options& options) {
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
        .between(kFewestRequests, kMostOfAServer);
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

Status read_cv(std::string_view option, const std::optional<std::string>& text,
               std::optional<double>& to) {
  if (!text) return {};
  const auto number = parse_number(*text);
  if (!number) return fail(ErrorKind::usage, "{}: {}", option, number.error().message);
  constexpr double kMost = 100;
  if (*number < 0 || *number > kMost)
    return fail(ErrorKind::usage, "{}: expected 0 to {}, got '{}'", option, kMost, clip(*text));
  to = *number;
  return {};
}

Status check_trace(const SimulateOptions& given) {
  if (!given.trace) {
    if (given.at_load || given.tokens_only)
      return fail(ErrorKind::usage, "{}: needs --trace",
                  given.at_load ? "--at-load" : "--tokens-only");
    return {};
  }
  if (given.trace->empty()) return fail(ErrorKind::usage, "--trace: expected a file, got ''");
  if (given.tokens_only) return {};
  if (given.arrival_cv)
    return fail(ErrorKind::usage,
                "--arrival-cv: the trace has its times; with --tokens-only they are drawn");
  if (given.requests > 0)
    return fail(ErrorKind::usage,
                "--requests: the trace is taken whole; with --tokens-only requests are drawn");
  return {};
}

Result<fleet::SimulationOptions> simulation_options(const SimulateOptions& given) {
  BERTH_TRY(check_trace(given));
  fleet::SimulationOptions options;
  if (given.requests > 0) options.requests = static_cast<std::size_t>(given.requests);
  options.seed = static_cast<std::uint64_t>(given.seed);
  options.routing = *fleet::kRoutingNames.value(given.routing);
  if (given.at_load) options.trace_use = fleet::TraceUse::at_load;
  if (given.tokens_only) options.trace_use = fleet::TraceUse::tokens;
  BERTH_TRY(read_cv("--in-cv", given.in_cv, options.in_cv));
  BERTH_TRY(read_cv("--out-cv", given.out_cv, options.out_cv));
  BERTH_TRY(read_cv("--arrival-cv", given.arrival_cv, options.arrival_cv));
  return options;
}

Result<int> simulate(os::Env& env, const SimulateOptions& given) {
  BERTH_ASSIGN(auto options, simulation_options(given));
  BERTH_ASSIGN(const auto system, engine::read_fleet(env, given.path, print_notes));
  engine::note_missing(system, print_notes);
  return given.output.print_or_fail(engine::simulate_fleet(env, system,
                                                           {.servers = given.servers,
                                                            .is_current = given.current,
                                                            .replicas = given.replicas,
                                                            .trace = given.trace,
                                                            .options = std::move(options)},
                                                           planning_execution(given.percentiles),
                                                           print_notes));
}

}  // namespace

Command simulate_command() {
  return command("simulate", "Simulate the servers of a fleet request by request", simulate);
}

}  // namespace berth::cli
