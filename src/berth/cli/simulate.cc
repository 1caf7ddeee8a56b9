// berth simulate: what the servers of a fleet attain, request by request, beside what is planned.
#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/table.h"
#include "berth/fleet/simulation.h"

namespace berth::cli {
namespace {

constexpr int kFewestRequests = 1000, kMostOfAServer = 20'000'000;
constexpr std::size_t kMostCharts = 8, kMostBars = 16;
constexpr double kRest = 1e-3;  // part of the requests that needs no bars of its own
constexpr int kWidestBar = 50;

struct SimulateOptions {
  bool json = false, current = false, at_load = false, tokens_only = false;
  std::string path, trace, routing = "random";
  std::string in_cv, out_cv, arrival_cv;  // as written
  std::vector<std::string> servers;
  int requests = 200'000, seed = 1, replicas = 0;

  void add_to(Options& options) {
    options.json(json);
    options.value("PATH", path, "a fleet document (JSON), or a directory of them").required();
    options.list("--server", servers, "only this one; may be given again").named("NAME");
    options.flag("--current", current, "what the servers have, in place of a plan");
    options.value("--trace", trace, "requests from a CSV file: seconds,in_tokens,out_tokens")
        .named("FILE");
    options.flag("--at-load", at_load,
                 "stretch the trace's times, so that its rate is the server's load");
    options
        .flag("--tokens-only", tokens_only,
              "draw arrivals at the server's load, and tokens from the trace")
        .excludes("--at-load");
    options.value("--requests", requests, "how many of each server (default 200000)")
        .between(kFewestRequests, kMostOfAServer);
    options.value("--seed", seed, "other numbers, other draws (default 1)").between(0, INT32_MAX);
    options.value("--replicas", replicas, "so many of each server's, in place of what is planned")
        .between(1, fleet::kMostSimulatedReplicas);
    options
        .value("--routing", routing,
               "which replica gets a request: random (default), round-robin, least-loaded")
        .one_of({"random", "round-robin", "least-loaded"});
    options
        .value("--in-cv", in_cv,
               "standard deviation / mean of the input tokens (default: the load's)")
        .named("CV")
        .excludes("--trace");
    options.value("--out-cv", out_cv, "the same of the output tokens")
        .named("CV")
        .excludes("--trace");
    options
        .value("--arrival-cv", arrival_cv,
               "the same of the gaps between arrivals (1 Poisson, 0 regular)")
        .named("CV");
    options.footer(
        "Examples:\n"
        "  berth simulate examples/fleet --out-cv 1\n"
        "  berth simulate examples/fleet --server assistant --routing least-loaded\n"
        "  berth simulate examples/fleet --server assistant --trace requests.csv --replicas 4");
  }
};

Status read_cv(std::string_view option, const std::string& text, std::optional<double>& to) {
  if (text.empty()) return {};
  const auto number = parse_number(text);
  if (!number) return fail(ErrorKind::usage, "{}: {}", option, number.error().message);
  constexpr double kMost = 100;
  if (*number < 0 || *number > kMost)
    return fail(ErrorKind::usage, "{}: wanted 0 to {}, found '{}'", option, kMost, clip(text));
  to = *number;
  return {};
}

Result<fleet::SimulationOptions> simulation_options(const SimulateOptions& given) {
  fleet::SimulationOptions options;
  options.requests = static_cast<std::size_t>(given.requests);
  options.seed = static_cast<std::uint64_t>(given.seed);
  options.routing = *fleet::kRoutingNames.value(given.routing);
  if (given.at_load) options.trace_use = fleet::TraceUse::at_load;
  if (given.tokens_only) options.trace_use = fleet::TraceUse::tokens;
  BERTH_TRY(read_cv("--in-cv", given.in_cv, options.in_cv));
  BERTH_TRY(read_cv("--out-cv", given.out_cv, options.out_cv));
  BERTH_TRY(read_cv("--arrival-cv", given.arrival_cv, options.arrival_cv));
  if (given.trace.empty() && (given.at_load || given.tokens_only))
    return fail(ErrorKind::usage, "{}: needs --trace",
                given.at_load ? "--at-load" : "--tokens-only");
  if (!given.trace.empty() && !given.tokens_only && !given.arrival_cv.empty())
    return fail(ErrorKind::usage,
                "--arrival-cv: the trace has its times; with --tokens-only they "
                "are drawn");
  return options;
}

/// A server, and what it attains or why it is not simulated.
struct SimulatedServer {
  std::string name;
  fleet::Allocation allocation;
  fleet::Target target;
  std::string not_simulated;
  fleet::Simulated found;
};

/// The servers that are to be simulated, with their allocations.
Result<std::vector<SimulatedServer>> servers_of(const fleet::System& system,
                                                const SimulateOptions& given) {
  std::vector<SimulatedServer> servers;
  for (const auto& name : given.servers)
    if (!system.servers.contains(name))
      return fail(ErrorKind::usage, "--server: no server '{}' is known", clip(name));
  fleet::Execution threads;
  threads.parallel_for = on_all_cores;
  const auto plan = given.current ? fleet::Plan{} : fleet::plan(system, threads);
  for (const auto& [name, server] : system.servers) {
    if (!given.servers.empty() && std::ranges::find(given.servers, name) == given.servers.end())
      continue;
    SimulatedServer one{name, server.current, fleet::target_of(system, server), "", {}};
    if (!given.current) {
      const auto& assignment = plan.servers.at(name);
      one.allocation = assignment.allocation;
      if (one.allocation.replicas == 0) one.not_simulated = assignment.reason;
    }
    if (given.replicas > 0) {
      if (!one.allocation.parts.empty())
        return fail(ErrorKind::usage, "--replicas: {} has a mix of accelerators", name);
      one.allocation.replicas = given.replicas;
      one.allocation.ttft_ms = one.allocation.itl_ms = 0;  // they were of other replicas
    }
    servers.push_back(std::move(one));
  }
  return servers;
}

// ---- For people ---------------------------------------------------------------------------------

std::string latency_text(double ms) {
  return fmt::format("{:.{}f}", ms, ms < 10 ? 2 : ms < 1000 ? 1 : 0);
}

std::string estimate_text(const fleet::Estimate& estimate) {
  if (!estimate.error) return latency_text(estimate.value);
  return fmt::format("{} ± {}", latency_text(estimate.value), latency_text(*estimate.error));
}

/// The target holds for the mean. Nearer to it than chance may move the mean: unsure.
std::string verdict(const fleet::Estimate& mean, double target_ms) {
  if (target_ms == 0) return "-";
  const bool is_near = std::abs(mean.value - target_ms) <= mean.error.value_or(0);
  return latency_text(target_ms) + (is_near                   ? " unsure"
                                    : mean.value <= target_ms ? " met"
                                                              : " missed");
}

std::string simulated_text(const std::vector<SimulatedServer>& servers) {
  Table table(
      {"server", "on", "use", "lost", "", "mean ms", "p50", "p95", "p99", "SLO", "planned"});
  std::string without;
  for (const auto& s : servers) {
    if (!s.not_simulated.empty()) {
      without += fmt::format("{}: not simulated: {}\n", s.name, s.not_simulated);
      continue;
    }
    const auto row = [&](bool first, const char* figure, const fleet::LatencyEstimate& latency,
                         double target_ms, double planned_ms) {
      table.add({first ? s.name : "", first ? fleet::in_words(s.allocation) : "",
                 first ? fmt::format("{:.0f} %", 100 * s.found.utilisation.value) : "",
                 first ? fmt::format("{:.2f} %", 100 * s.found.lost_part.value) : "", figure,
                 estimate_text(latency.mean), latency_text(latency.p50.value),
                 estimate_text(latency.p95), estimate_text(latency.p99),
                 verdict(latency.mean, target_ms),
                 planned_ms > 0 ? latency_text(planned_ms) : "-"});
    };
    row(true, "TTFT", s.found.ttft_ms, s.target.ttft_ms, s.allocation.ttft_ms);
    row(false, "ITL", s.found.itl_ms, s.target.itl_ms, s.allocation.itl_ms);
  }
  return (table.empty() ? "" : table.text()) + without;
}

constexpr std::size_t kToAPower = 10, kPowers = 12;

/// The end of the i-th range of times: ISO 3's preferred numbers, ten to a power of ten, from 1 ms.
double range_end_ms(std::size_t i) {
  constexpr std::array kPreferred{1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0};
  static_assert(kPreferred.size() == kToAPower);
  return kPreferred[i % kToAPower] * std::pow(10.0, static_cast<double>(i / kToAPower));
}

/// A bar for each range of times to the first token.
std::string ttft_chart(const SimulatedServer& server) {
  std::array<std::int64_t, kPowers * kToAPower> counts{};
  for (const double ms : server.found.all_ttft_ms) {
    const auto power = ms < 1 ? 0 : static_cast<std::size_t>(std::log10(ms));
    std::size_t i = std::min(power, kPowers - 1) * kToAPower;
    while (i + 1 < counts.size() && ms >= range_end_ms(i)) ++i;
    ++counts[i];
  }
  const auto all = static_cast<double>(server.found.all_ttft_ms.size());
  const auto most = static_cast<double>(*std::ranges::max_element(counts));
  if (most == 0) return "";
  std::string text = fmt::format("\n{}: TTFT of {} requests\n", server.name, all);
  double left = all;
  for (std::size_t i = 0, bars = 0; left > 0; ++i) {
    auto count = static_cast<double>(counts[i]);
    if (count == 0 && bars == 0) continue;
    const bool is_last = ++bars == kMostBars || left <= kRest * all;
    if (is_last) count = left;
    const auto width = std::lround(kWidestBar * std::min(count / most, 1.0));
    text += fmt::format(
        "{:>12} |{:<{}} {:5.2f} %\n", is_last ? "more" : fmt::format("< {:g} ms", range_end_ms(i)),
        std::string(static_cast<std::size_t>(width), '#'), kWidestBar, 100 * count / all);
    left -= count;
  }
  return text;
}

// ---- For programs -------------------------------------------------------------------------------

void write_estimate(JsonWriter& json, const char* name, const fleet::Estimate& estimate) {
  json.key(name).object().add("value", estimate.value).key("error");
  if (estimate.error)
    json.value(*estimate.error);
  else
    json.raw("null");
  json.end();
}

void write_latency(JsonWriter& json, const char* name, const fleet::LatencyEstimate& latency,
                   double target_ms, double planned_ms) {
  json.key(name).object();
  write_estimate(json, "mean", latency.mean);
  write_estimate(json, "p50", latency.p50);
  write_estimate(json, "p90", latency.p90);
  write_estimate(json, "p95", latency.p95);
  write_estimate(json, "p99", latency.p99);
  json.add("target", target_ms).add("planned", planned_ms).end();
}

/// {"version": 1, "servers": {name: {…}}, "not_simulated": {name: reason}}. A figure is {"value",
/// "error"}: half of the 95 % confidence interval, or null; times are in ms, a target of 0 is none.
std::string simulation_json(const std::vector<SimulatedServer>& servers) {
  JsonWriter json;
  json.object().add("version", 1).key("servers").object();
  for (const auto& s : servers) {
    if (!s.not_simulated.empty()) continue;
    json.key(s.name).object().add("allocation", fleet::in_words(s.allocation));
    json.add("numReplicas", s.allocation.replicas).add("maxBatch", s.allocation.batch);
    write_latency(json, "ttft", s.found.ttft_ms, s.target.ttft_ms, s.allocation.ttft_ms);
    write_latency(json, "itl", s.found.itl_ms, s.target.itl_ms, s.allocation.itl_ms);
    write_estimate(json, "requestsPerMinute", s.found.throughput_per_min);
    write_estimate(json, "inService", s.found.in_service);
    write_estimate(json, "utilisation", s.found.utilisation);
    write_estimate(json, "lost", s.found.lost_part);
    json.add("requests", s.found.requests).add("histories", s.found.histories).end();
  }
  json.end().key("not_simulated").object();
  for (const auto& s : servers)
    if (!s.not_simulated.empty()) json.add(s.name, s.not_simulated);
  return json.end().end().take() + "\n";
}

void print_trace_note(const std::vector<fleet::Request>& trace) {
  if (trace.empty()) return;
  double in = 0, out = 0;
  for (const auto& request : trace) in += request.in_tokens, out += request.out_tokens;
  const auto count = static_cast<double>(trace.size());
  const double minutes = trace.back().arrival / 60'000;
  print_error(fmt::format(
      "note: the trace has {} requests, {:.1f} a minute, of {:.1f} tokens in and {:.1f} out\n",
      trace.size(), minutes > 0 ? (count - 1) / minutes : 0, in / count, out / count));
}

/// A request stays for in_service gaps between arrivals. Unless the tenth that is left out of each
/// of the ten histories is three such stays, the replicas are not yet as full as they will be.
void print_short_note(const SimulatedServer& server) {
  constexpr double kTimesInService = 300;
  const double enough = kTimesInService * server.found.in_service.value;
  if (server.found.histories > 1 && static_cast<double>(server.found.requests) < enough)
    print_error(
        fmt::format("note: {}: with so few requests, the empty start is still felt; "
                    "--requests {:.0f} would be enough\n",
                    server.name, 1000 * std::ceil(enough / 900)));
}

Result<int> simulate(os::Env& env, const SimulateOptions& given) {
  BERTH_ASSIGN(auto options, simulation_options(given));
  BERTH_ASSIGN(const auto documents, fleet_documents(env, given.path));
  BERTH_ASSIGN(const auto reading, fleet::read_documents(documents));
  print_notes(reading.notes);
  std::vector<fleet::Request> trace;
  if (!given.trace.empty()) {
    BERTH_ASSIGN(trace, fleet_trace(env, given.trace));
  }
  print_trace_note(trace);
  options.trace = trace;
  BERTH_ASSIGN(auto servers, servers_of(reading.system, given));
  fleet::Execution threads;
  threads.parallel_for = on_all_cores;
  for (auto& server : servers) {
    if (!server.not_simulated.empty()) continue;
    auto found =
        fleet::simulate_server(reading.system, server.name, server.allocation, options, threads);
    if (found) {
      server.found = *std::move(found);
      print_short_note(server);
    } else {
      server.not_simulated = found.error().message;
    }
  }
  if (given.json) {
    print(simulation_json(servers));
    return 0;
  }
  print(simulated_text(servers));
  if (servers.size() <= kMostCharts)
    for (const auto& server : servers) print(ttft_chart(server));
  return 0;
}

}  // namespace

Command simulate_command() {
  return command("simulate", "what the servers of a fleet attain, request by request", simulate);
}

}  // namespace berth::cli
