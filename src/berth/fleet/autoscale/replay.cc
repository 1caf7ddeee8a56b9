#include "berth/fleet/autoscale/replay.h"

#include <algorithm>

#include "berth/fleet/model/system_view.h"
#include "berth/fleet/simulate/simulation.h"

namespace berth::fleet {
namespace {

constexpr double kMsPerS = 1000;
constexpr double kMostDecisions = 100'000;

/// What arrives in [from, until) seconds.
Live live_of(std::span<const Request> trace, double from_s, double until_s) {
  const auto at = [&](double s) {
    return std::ranges::lower_bound(trace, s * kMsPerS, {}, &Request::arrival);
  };
  const auto first = at(from_s), last = at(until_s);
  const auto count = static_cast<double>(last - first);
  Live live;
  live.arrivals_per_min = count / (until_s - from_s) * 60;
  double in = 0, out = 0;
  for (auto r = first; r != last; ++r) in += r->in_tokens, out += r->out_tokens;
  if (count > 0) live.in_tokens = in / count, live.out_tokens = out / count;
  return live;
}

/// The server's one candidate, on the accelerator that it keeps.
Result<Candidate> candidate_for(const System& system, const Load& load,
                                const Execution& execution) {
  System asked = system;
  Server& server = asked.servers.begin()->second;
  server.current.load = load;
  server.keep_accelerator = true;
  server.min_replicas = std::max(1, server.min_replicas);
  const Candidates made = candidates(asked, asked.options.model, execution);
  if (made.all.size() == 1) return made.all[0];
  const auto a = static_cast<std::size_t>(
      std::ranges::find(made.accelerators, server.current.accelerator) - made.accelerators.begin());
  return fail(ErrorKind::impossible, "cannot be served on {}: {}", server.current.accelerator,
              a < made.refusals.size() ? name(made.refusals[a]) : "no such accelerator");
}

class Replayer {
 public:
  Replayer(System system, std::span<const Request> trace, const ReplayOptions& options,
           const Execution& execution)
      : system_(std::move(system)), trace_(trace), options_(options), execution_(execution) {}

  Result<Replay> run() {
    Server& server = system_.servers.begin()->second;
    found_.length_s = trace_.back().arrival / kMsPerS;
    if (server.current.accelerator.empty()) {
      server.current.load = load_of(live_of(trace_, 0, found_.length_s));
      server.current.accelerator =
          plan(system_, execution_).servers.begin()->second.allocation.accelerator;
      if (server.current.accelerator.empty())
        return fail(ErrorKind::impossible, "no accelerator serves it");
    }
    found_.accelerator = server.current.accelerator;
    BERTH_TRY(decide());
    account();
    return serve();
  }

 private:
  Load load_of(const Live& live) const {
    Load load = system_.servers.begin()->second.current.load;
    load.arrivals_per_min = *live.arrivals_per_min;
    load.in_tokens = in_token_steps(live.in_tokens.value_or(load.in_tokens));
    load.out_tokens = in_token_steps(live.out_tokens.value_or(load.out_tokens));
    return load;
  }

  Status decide() {
    Server& server = system_.servers.begin()->second;
    const double interval_s = options_.autoscaler.interval_s;
    const double first_s = std::min(options_.window_s, found_.length_s);
    BERTH_ASSIGN(const Candidate first,
                 candidate_for(system_, load_of(live_of(trace_, 0, first_s)), execution_));
    server.current.replicas = room_for(first);
    if (server.current.replicas == 0)
      return fail(ErrorKind::impossible, "the capacity has no room for one replica of it");
    Autoscaler loop(system_, options_.autoscaler, execution_);
    for (double at_s = first_s; at_s <= found_.length_s; at_s += interval_s) {
      Live live = live_of(trace_, at_s - options_.window_s, at_s);
      live.replicas = serving_at(server.current.replicas, wanted_, at_s);
      found_.decisions.emplace_back(
          at_s, loop.decide(at_s, {{system_.servers.begin()->first, live}}, execution_)[0]);
      wanted_.push_back(
          {at_s, at_s + options_.autoscaler.startup_s, found_.decisions.back().second.desired});
      BERTH_ASSIGN(const Candidate now, candidate_for(system_, load_of(live), execution_));
      found_.static_replicas = std::max(found_.static_replicas, room_for(now));
      found_.batch = std::max(found_.batch, now.batch);
    }
    return {};
  }

  void account() {
    const double cents_per_h = system_.accelerators.at(found_.accelerator).cost * units_of_cost();
    std::vector<std::pair<double, int>> starts;
    double replica_s = 0, since_s = 0;
    int has = system_.servers.begin()->second.current.replicas;
    for (const auto& [at_s, d] : found_.decisions) {
      replica_s += has * (at_s - since_s);
      since_s = at_s;
      if (d.desired > has) {
        found_.starts += d.desired - has;
        starts.emplace_back(at_s, d.desired - has);
      } else if (d.desired < has) {
        found_.stops += has - d.desired;
        for (const auto& [started_s, count] : starts)
          if (at_s - started_s < options_.autoscaler.hold_s) {
            found_.flaps += has - d.desired;
            break;
          }
      }
      has = d.desired;
    }
    replica_s += has * (found_.length_s - since_s);
    found_.cents = replica_s / 3600 * cents_per_h;
    found_.static_cents = found_.static_replicas * found_.length_s / 3600 * cents_per_h;
  }

  double units_of_cost() const {
    const Server& server = system_.servers.begin()->second;
    return std::max(
        1, system_.models.at(server.model).accelerators.at(found_.accelerator).accelerators);
  }

  /// Of what a candidate wants, what the capacity has room for.
  int room_for(const Candidate& candidate) const {
    if (system_.options.solver == Solver::unlimited) return candidate.replicas;
    const auto& type =
        system_.accelerators.at(system_.servers.begin()->second.current.accelerator).type;
    const auto capacity = system_.capacities.find(type);
    const std::int64_t units = capacity == system_.capacities.end() ? 0 : capacity->second.count;
    return static_cast<int>(std::min<std::int64_t>(
        candidate.replicas, units / std::max(1, candidate.units_per_replica)));
  }

  Result<Replay> serve() {
    const Server& server = system_.servers.begin()->second;
    Deployment deployment =
        deployment_of(system_.models.at(server.model).accelerators.at(found_.accelerator),
                      found_.batch, server.max_queue);
    deployment.replicas = server.current.replicas;
    deployment.routing = options_.routing;
    deployment.changes = changes_of(deployment.replicas, wanted_);
    BERTH_TRY(check(deployment));
    std::vector<double> ttft_ms;
    const Outcome outcome = simulate(deployment, trace_, 1, {}, options_.seed, &ttft_ms);
    found_.attained = attainment_of(outcome, trace_, ttft_ms, target_of(system_, server));
    return std::move(found_);
  }

  System system_;
  std::span<const Request> trace_;
  const ReplayOptions& options_;
  const Execution& execution_;
  std::vector<WantedReplicas> wanted_;  // by found_.decisions
  Replay found_;
};

}  // namespace

Result<Replay> replay(const System& system, const std::string& server,
                      std::span<const Request> trace, const ReplayOptions& options,
                      const Execution& execution) {
  BERTH_ASSIGN(const Server known, get(system.servers, server));
  BERTH_TRY(check(options.autoscaler));
  const double length_s = trace.size() < 2 ? 0 : trace.back().arrival / kMsPerS;
  const double intervals = length_s / options.autoscaler.interval_s;
  if (!(intervals >= 2 && intervals <= kMostDecisions))
    return fail(ErrorKind::invalid,
                "the trace: expected 2 to {:.0f} intervals of {} s, got {} requests in {:.0f} s",
                kMostDecisions, options.autoscaler.interval_s, trace.size(), length_s);
  if (!(options.window_s > 0) || options.window_s > length_s)
    return fail(ErrorKind::invalid,
                "the window: expected more than 0 s, at most {:.0f} s; got {} s", length_s,
                options.window_s);
  System only = system;
  only.servers = {{server, known}};
  BERTH_TRY(check_scalable(only));
  return Replayer(std::move(only), trace, options, execution).run();
}

}  // namespace berth::fleet
