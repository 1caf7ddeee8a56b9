// berth simulate: what the servers of a fleet attain, request by request, beside what is planned.
#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/fleet_view.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/fleet/simulation.h"
#include "berth/fleet/sizing.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

constexpr int kFewestRequests = 1000, kMostOfAServer = 20'000'000;
constexpr std::size_t kMostCharts = 8, kMostBars = 16;
constexpr double kRest = 1e-3;  // part of the requests that needs no bars of its own
constexpr int kWidestBar = 50;

struct SimulateOptions {
  bool json = false, current = false, at_load = false, tokens_only = false;
  std::string path, routing = "random", percentiles = "simulated";
  std::optional<std::string> trace, in_cv, out_cv, arrival_cv;  // as written
  std::vector<std::string> servers;
  int requests = 0, seed = 1, replicas = 0;  // 0: not given

  void add_to(Options& options) {
    options.json(json);
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
                                                const SimulateOptions& given,
                                                const fleet::Execution& execution) {
  std::vector<SimulatedServer> servers;
  for (const auto& name : given.servers)
    if (!system.servers.contains(name))
      return fail(ErrorKind::usage, "--server: no server '{}' is known", clip(name));
  if (!given.current) print_percentiles_note(system, system.options.model);
  const auto plan = given.current ? fleet::Plan{} : fleet::plan(system, execution);
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
        return fail(ErrorKind::usage, "--replicas: {} has {}, whose parts have separate replicas",
                    name, fleet::in_words(one.allocation));
      one.allocation.replicas = given.replicas;
      one.allocation.ttft_ms = one.allocation.itl_ms = 0;  // they were of other replicas
    }
    servers.push_back(std::move(one));
  }
  return servers;
}

/// The mean or a percentile of a latency, and what it is to be; a target of 0 is none.
struct Figure {
  std::string_view name;
  fleet::Estimate estimate;
  double target_ms = 0;
  fleet::Verdict verdict = fleet::Verdict::none;
  bool is_measured = false;
};
struct Latency {
  std::string_view name;
  std::vector<Figure> figures;
  double planned_ms = 0;  // of the mean
};

std::array<Latency, 2> latencies_of(const SimulatedServer& s) {
  const auto of = [&](std::string_view name, const fleet::LatencyEstimate& found, double target_ms,
                      const std::array<double, fleet::kPercentiles.size()>& targets_ms,
                      double planned_ms) {
    Latency latency{name, {}, planned_ms};
    const auto add = [&](std::string_view figure, const fleet::Estimate& estimate, double most_ms) {
      latency.figures.push_back({figure, estimate, most_ms,
                                 fleet::verdict(s.found, estimate, found.count, most_ms),
                                 found.count > 0});
    };
    add("mean", found.mean, target_ms);
    for (std::size_t p = 0; p < found.percentiles.size(); ++p)
      add(fleet::kPercentileNames[p], found.percentiles[p], targets_ms[p]);
    return latency;
  };
  const fleet::Percentiles& targets = s.target.percentiles;
  return {
      of("TTFT", s.found.ttft_ms, s.target.ttft_ms, targets.ttft_ms, s.allocation.ttft_ms),
      of("ITL", s.found.itl_ms, s.target.itl_ms, targets.itl_ms, s.allocation.itl_ms),
  };
}

// ---- For people ---------------------------------------------------------------------------------

std::string latency_text(double ms) {
  return fmt::format("{:.{}f}", ms, ms < 10 ? 2 : ms < 1000 ? 1 : 0);
}

std::string estimate_text(const fleet::Estimate& estimate) {
  if (!estimate.error) return latency_text(estimate.value);
  return fmt::format("{} ± {}", latency_text(estimate.value), latency_text(*estimate.error));
}

/// "465.7 ± 71.5 / 800.0 met"; "-" of nothing.
std::string figure_text(const Figure& figure) {
  const std::string text = figure.is_measured ? estimate_text(figure.estimate) : "-";
  if (figure.target_ms == 0) return text;
  return fmt::format("{} / {} {}", text, latency_text(figure.target_ms),
                     fleet::kVerdictNames.name(figure.verdict));
}

/// Why no target is met, or perhaps none is, whatever the latencies are; "" where enough are
/// served.
std::string lost_text(const SimulatedServer& server) {
  const fleet::Estimate& lost = server.found.lost_part;
  const auto verdict = fleet::verdict(lost, fleet::kMostLoss);
  const bool has_target =
      server.target.ttft_ms > 0 || server.target.itl_ms > 0 || server.target.has_percentiles();
  if (!has_target || verdict == fleet::Verdict::met) return "";
  const bool is_sure = verdict == fleet::Verdict::missed;
  return fmt::format(
      "{}: {:.2f} % of its requests are lost, {}more than {:g} %: no target is {}met\n",
      server.name, 100 * lost.value, is_sure ? "" : "perhaps ", 100 * fleet::kMostLoss,
      is_sure ? "" : "known to be ");
}

/// Whose lengths are drawn of a histogram.
std::string drawn_text(const std::vector<SimulatedServer>& servers,
                       const fleet::SimulationOptions& options) {
  std::vector<std::string> by_histogram;
  for (const auto& s : servers) {
    const auto traffic = fleet::traffic_of(s.allocation.load, options);
    const bool is_drawn = s.not_simulated.empty() && options.trace.empty();
    if (is_drawn && (traffic.in.histogram || traffic.out.histogram)) by_histogram.push_back(s.name);
  }
  return histograms_text(by_histogram);
}

std::string simulated_text(const std::vector<SimulatedServer>& servers) {
  render::Table table(
      {"server", "on", "use", "lost", "", "mean / SLO ms", "p50", "p90", "p95", "p99", "planned"});
  std::string below;
  for (const auto& s : servers) {
    if (!s.not_simulated.empty()) {
      below += fmt::format("{}: not simulated: {}\n", s.name, s.not_simulated);
      continue;
    }
    std::vector<std::string> row{s.name, fleet::in_words(s.allocation),
                                 fmt::format("{:.0f} %", 100 * s.found.utilisation.value),
                                 fmt::format("{:.2f} %", 100 * s.found.lost_part.value)};
    for (const Latency& latency : latencies_of(s)) {
      row.emplace_back(latency.name);
      for (const Figure& figure : latency.figures) row.push_back(figure_text(figure));
      row.push_back(latency.planned_ms > 0 ? latency_text(latency.planned_ms) : "-");
      table.add(std::move(row));
      row = {"", "", "", ""};
    }
    below += lost_text(s);
  }
  return (table.empty() ? "" : render::to_text(table)) + below;
}

std::string requests_text(std::size_t count) {
  return fmt::format("{} request{}", count, count == 1 ? "" : "s");
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
  std::string text = fmt::format("\n{}: TTFT of {}\n", server.name,
                                 requests_text(server.found.all_ttft_ms.size()));
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

void write_error(JsonWriter& json, const std::optional<double>& error) {
  json.key("error");
  if (error)
    json.value(*error);
  else
    json.raw("null");
}

void write_estimate(JsonWriter& json, const char* name, const fleet::Estimate& estimate) {
  json.key(name).object().add("value", estimate.value);
  write_error(json, estimate.error);
  json.end();
}

void write_latency(JsonWriter& json, const Latency& latency) {
  json.key(lower(latency.name)).object();
  for (const Figure& figure : latency.figures) {
    json.key(figure.name).object().key("value");
    if (figure.is_measured)
      json.value(figure.estimate.value);
    else
      json.raw("null");
    write_error(json, figure.estimate.error);
    json.add("target", figure.target_ms);
    json.add("verdict", fleet::kVerdictNames.name(figure.verdict)).end();
  }
  json.add("planned", latency.planned_ms).end();
}

/// {"version": 1, "servers": {name: {…}}, "not_simulated": {name: reason}}. A figure is {"value",
/// "error"}: half of the 95 % confidence interval, or null; one of a latency has a "target", too,
/// in ms, where 0 is none, and a "verdict", and its "value" is null where nobody was served.
std::string simulation_json(const std::vector<SimulatedServer>& servers) {
  JsonWriter json;
  json.object().add("version", 1).key("servers").object();
  for (const auto& s : servers) {
    if (!s.not_simulated.empty()) continue;
    json.key(s.name).object().add("allocation", fleet::in_words(s.allocation));
    json.add("numReplicas", s.allocation.replicas).add("maxBatch", s.allocation.batch);
    for (const Latency& latency : latencies_of(s)) write_latency(json, latency);
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
  print_error(
      fmt::format("note: the trace has {}, {:.1f} a minute, of {:.1f} tokens in and {:.1f} out\n",
                  requests_text(trace.size()), minutes > 0 ? (count - 1) / minutes : 0, in / count,
                  out / count));
}

void print_short_note(const SimulatedServer& server) {
  if (server.found.is_settled()) return;
  print_error(fmt::format(
      "note: {}: the empty start may still have an effect, so no target is known to be met: the "
      "part left out of each history is {:.1f} times as long as the service of a request, expected "
      "{}. It grows with --requests; after that, each ± shrinks with their square root\n",
      server.name, server.found.left_out, fleet::kLeftOut));
}

Result<int> simulate(os::Env& env, const SimulateOptions& given) {
  BERTH_ASSIGN(auto options, simulation_options(given));
  BERTH_ASSIGN(const auto documents, fleet_documents(env, given.path));
  BERTH_ASSIGN(const auto reading, fleet::read_documents(documents));
  print_notes(reading.notes);
  print_fleet_notes(reading.system);
  std::vector<fleet::Request> trace;
  if (given.trace) {
    BERTH_ASSIGN(trace, fleet_trace(env, *given.trace));
  }
  print_trace_note(trace);
  options.trace = trace;
  const auto execution = planning_execution(given.percentiles);
  BERTH_ASSIGN(auto servers, servers_of(reading.system, given, execution));
  for (auto& server : servers) {
    if (!server.not_simulated.empty()) continue;
    auto found =
        fleet::simulate_server(reading.system, server.name, server.allocation, options, execution);
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
  print(simulated_text(servers) + drawn_text(servers, options));
  if (servers.size() <= kMostCharts)
    for (const auto& server : servers) print(ttft_chart(server));
  return 0;
}

}  // namespace

Command simulate_command() {
  return command("simulate", "Simulate the servers of a fleet request by request", simulate);
}

}  // namespace berth::cli
