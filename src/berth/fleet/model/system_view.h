// Questions about a system that several files of the storey ask.
#pragma once

#include "berth/base/text.h"
#include "berth/fleet/fleet.h"

namespace berth::fleet {

inline constexpr int kMostReplicas = 10'000'000;
inline constexpr int kLowestPriority = 100;
inline constexpr double kMostVariation = 20;  // of what varies, standard deviation / mean

/// The entry of that name. not_found: names the nearest one that there is.
template <class T>
Result<const T*> find(const std::map<std::string, T>& entries, const std::string& name,
                      std::string_view what) {
  if (const auto found = entries.find(name); found != entries.end()) return &found->second;
  std::vector<std::string_view> known;
  for (const auto& [each, entry] : entries) known.push_back(each);
  const std::string_view meant = nearest(name, known);
  return fail(ErrorKind::not_found, "no {} '{}' is known{}", what, clip(name),
              meant.empty() ? "" : fmt::format("; did you mean '{}'?", clip(meant)));
}

/// The server's class, or Free.
std::string class_of(const Server& server);
/// The priority of the server's class; the lowest if the class is not known.
int priority_of(const System& system, const Server& server);
/// The load that the server is planned for, in requests a millisecond; 0: it is idle.
double rate_per_ms(const Load& load, const Target& target, QueueModel model);
/// Adds what earlier documents said. Errors: invalid, for an entry that is not the same in both.
Status merge(System& system, System&& earlier);
bool keeps_another(const Server& server, std::string_view accelerator);

Status check(const Load& load);
Status check(const Allocation& allocation);

/// What an allocation is made of: the parts of a mix; else itself, where it is one.
std::span<const Allocation> parts_of(const Allocation& allocation);

/// The allocation of `replicas` of a candidate, with the figures of one under its part of the load.
Allocation allocation_of(const System& system, const Candidates& candidates, const Server& server,
                         const Candidate& candidate, int replicas);

/// Calls body(0) … body(count − 1) through execution.parallel_for.
void for_each(const Execution& execution, std::size_t count,
              const std::function<void(std::size_t)>& body);

}  // namespace berth::fleet
