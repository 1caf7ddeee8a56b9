// What the servers of a day may have: their candidates of all windows.
#include <algorithm>

#include "berth/fleet/day/day_path.h"
#include "berth/fleet/solver/solution.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostCopies = 4096;  // of servers, for which candidates are made together

/// The servers from `first` to `end`, each once for each window with the window's load.
System windows_of(const System& system, const Profile& profile, std::size_t first,
                  std::size_t end) {
  System made;
  made.accelerators = system.accelerators;
  made.models = system.models;
  made.classes = system.classes;
  auto server = std::next(system.servers.begin(), static_cast<std::ptrdiff_t>(first));
  for (std::size_t s = first; s < end; ++s, ++server)
    for (std::size_t w = 0; w < profile.size(); ++w) {
      Server& copy =
          made.servers.emplace(fmt::format("{:09}.{:06}", s, w), server->second).first->second;
      copy.current.load = profile[w].loads.at(server->first);
    }
  return made;
}

/// The server whose windows are `count` of the candidates from `first` on.
DayServer day_server(const Server& like, const Candidates& made, std::size_t first,
                     std::size_t count) {
  std::map<std::pair<std::uint32_t, int>, DayLevel> levels;
  for (std::size_t w = first; w < first + count; ++w)
    for (const Candidate& c : made.of(w))
      if (c.accelerator != Candidate::kNothing && c.replicas > 0) {
        DayLevel& level = levels[{c.accelerator, c.replicas}];
        level = {.accelerator = c.accelerator,
                 .type = made.type_of[c.accelerator],
                 .replicas = c.replicas,
                 .batch = std::max(level.batch, c.batch),
                 .units_each = c.units_per_replica,
                 .cost_each = c.cost / c.replicas};
      }
  DayServer server;
  server.levels.push_back({});
  for (const auto& [key, level] : levels) server.levels.push_back(level);
  for (std::size_t w = first; w < first + count; ++w) {
    const auto of = made.of(w);
    const bool idle = !of.empty() && of[0].accelerator == Candidate::kNothing;
    std::vector<bool> serves;
    for (const DayLevel& level : server.levels)
      serves.push_back(idle || std::ranges::any_of(of, [&](const Candidate& c) {
                         return c.accelerator == level.accelerator && c.replicas <= level.replicas;
                       }));
    server.serves.push_back(std::move(serves));
    server.unservable.push_back(of.empty() ? why_no_candidate(like, made, w) : "");
  }
  const auto servable = std::ranges::find(server.unservable, "");
  if (servable != server.unservable.end())
    server.first_servable = static_cast<std::size_t>(servable - server.unservable.begin());
  return server;
}

}  // namespace

DayServers day_servers(const System& system, const Profile& profile, const Execution& execution) {
  DayServers servers;
  const std::size_t count = system.servers.size(), windows = profile.size();
  const std::size_t at_once = std::max<std::size_t>(1, kMostCopies / windows);
  auto server = system.servers.begin();
  for (std::size_t first = 0; first < count; first += at_once) {
    const std::size_t end = std::min(count, first + at_once);
    const Candidates made =
        candidates(windows_of(system, profile, first, end), system.options.model, execution);
    for (std::size_t s = first; s < end; ++s, ++server)
      servers.all.push_back(day_server(server->second, made, (s - first) * windows, windows));
    servers.stopped |= made.stopped;
  }
  return servers;
}

}  // namespace berth::fleet
