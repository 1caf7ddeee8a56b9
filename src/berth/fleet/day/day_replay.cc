#include "berth/fleet/day/day_replay.h"

#include <algorithm>
#include <limits>

#include "berth/fleet/model/system_view.h"
#include "berth/fleet/simulate/simulation.h"

namespace berth::fleet {
namespace {

/// A time in which a server has replicas of one accelerator, fewer or more.
struct OneAccelerator {
  std::string accelerator;
  double from_s = 0, until_s = std::numeric_limits<double>::infinity();
  int first = 0;
  std::vector<WantedReplicas> wanted{};
};

std::vector<OneAccelerator> times_of(const Day& day, const DayPlan& plan, std::size_t server,
                                     double startup_s) {
  std::vector<OneAccelerator> times;
  std::string before;
  double up_s = 0;
  for (std::size_t w = 0; w < day.windows.size(); ++w) {
    const DayAllocation& now = plan.allocations[w][server];
    const double at_s = day.windows[w].start_s;
    const double in_time_s = w == 0     ? startup_s
                             : now.late ? 0
                                        : std::min(startup_s, day.windows[w - 1].length_s);
    const double begun_up_s = at_s + startup_s - in_time_s;
    if (w == 0 || now.accelerator != before) {
      if (!before.empty()) times.back().until_s = at_s;
      before = now.accelerator, up_s = begun_up_s;
      if (!before.empty())
        times.push_back({.accelerator = before, .from_s = up_s, .first = now.replicas});
      continue;
    }
    const int had = plan.allocations[w - 1][server].replicas;
    if (now.replicas == had) continue;
    if (now.replicas > had) up_s = std::max(up_s, begun_up_s);
    up_s = std::max(up_s, at_s);
    times.back().wanted.push_back({at_s, up_s, now.replicas});
  }
  return times;
}

Result<Deployment> deployment_in(const System& system, const Server& server,
                                 const OneAccelerator& time, int batch) {
  Deployment made = deployment_of(system.models.at(server.model).accelerators.at(time.accelerator),
                                  batch, server.max_queue);
  made.replicas = time.first;
  made.routing = Routing::random;
  made.changes = changes_of(time.first, time.wanted);
  BERTH_TRY(check(made));
  return made;
}

Result<Attainment> replay_plan(const System& system, const Day& day, const DayPlan& plan,
                               std::size_t server, double startup_s, std::span<const Request> trace,
                               std::uint64_t seed) {
  const Server& known = system.servers.at(day.servers[server]);
  std::vector<double> ttft_ms(trace.size(), std::numeric_limits<double>::quiet_NaN());
  Outcome all;
  for (const auto& time : times_of(day, plan, server, startup_s)) {
    const auto at = [&](double s) {
      return std::ranges::lower_bound(trace, s * 1000, {}, &Request::arrival) - trace.begin();
    };
    const auto first = at(time.from_s), last = at(time.until_s);
    if (first >= last) continue;
    BERTH_ASSIGN(const Deployment deployment,
                 deployment_in(system, known, time, day.batches[server].at(time.accelerator)));
    std::vector<double> of_time_ms;
    const auto count = static_cast<std::size_t>(last - first);
    all.add(simulate(deployment, trace.subspan(static_cast<std::size_t>(first), count), 1, {},
                     seed_of(seed, Stream::routing, static_cast<std::uint64_t>(first)),
                     &of_time_ms));
    std::ranges::copy(of_time_ms, ttft_ms.begin() + first);
  }
  return attainment_of(all, trace, ttft_ms, target_of(system, known));
}

}  // namespace

Result<std::vector<ReplayedServer>> replay_day(const System& system, const Day& day,
                                               const DayOptions& options,
                                               std::span<const Request> trace,
                                               const std::map<std::string, double>& parts,
                                               std::uint64_t seed, const Execution& execution) {
  std::vector<std::size_t> servers;
  std::vector<double> some;
  for (const auto& [name, part] : parts) {
    const auto found = std::ranges::find(day.servers, name);
    if (found == day.servers.end()) return fail(ErrorKind::not_found, "no '{}' is known", name);
    if (!(part > 0)) continue;
    servers.push_back(static_cast<std::size_t>(found - day.servers.begin()));
    some.push_back(part);
  }
  if (servers.empty()) return std::vector<ReplayedServer>{};
  const auto requests = divide({trace.begin(), trace.end()}, some, seed);
  const std::array plans{&day.static_plan, &day.greedy, &day.best};
  std::vector<Result<Attainment>> found(servers.size() * plans.size());
  for_each(execution, found.size(), [&](std::size_t i) {
    const auto& own = requests[i / plans.size()];
    if (own.empty()) return;
    found[i] = replay_plan(system, day, *plans[i % plans.size()], servers[i / plans.size()],
                           options.startup_s, own, seed);
  });
  std::vector<ReplayedServer> replayed;
  for (std::size_t s = 0; s < servers.size(); ++s) {
    if (requests[s].empty()) continue;
    ReplayedServer of{servers[s], {}};
    for (std::size_t p = 0; p < plans.size(); ++p) {
      auto& one = found[s * plans.size() + p];
      if (!one) return std::unexpected(within(day.servers[of.server], std::move(one).error()));
      of.plans[p] = *one;
    }
    replayed.push_back(std::move(of));
  }
  return replayed;
}

}  // namespace berth::fleet
