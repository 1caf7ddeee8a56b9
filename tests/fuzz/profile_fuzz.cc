// A profile that is read has windows that follow one another, and its day costs no less than the
// bound.
#include <cmath>

#include "berth/fleet/day/day.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  using namespace berth::fleet;
  System system;
  for (const char* name : {"a", "b"}) {
    system.accelerators[name].type = name;
    system.accelerators[name].cost = 100;
    system.capacities[name].count = 3;
    system.models["m"].accelerators[name] = {1, 8, 1024, 8, 0.1, 0.0001};
    Server& server = system.servers[name];
    server.service_class = "c", server.model = "m";
    server.current.load = {60, 0, 500, 100};
  }
  system.classes["c"].targets["m"] = {40, 1000, 0};
  const auto profile = read_profile("p", text, system);
  if (!profile) {
    BERTH_ASSERT(profile.error().kind == ErrorKind::invalid &&
                 profile.error().message.starts_with("p:"));
    return;
  }
  for (std::size_t w = 0; w + 1 < profile->size(); ++w)
    BERTH_ASSERT((*profile)[w].start_s + (*profile)[w].length_s == (*profile)[w + 1].start_s);
  constexpr std::size_t kMostPlanned = 20;  // more take long
  if (profile->size() > kMostPlanned) return;
  const auto day = plan_day(system, *profile, {.change_cents = 1, .startup_s = 60});
  if (!day) {
    BERTH_ASSERT(day.error().kind == ErrorKind::invalid);
    return;
  }
  BERTH_ASSERT(std::isfinite(day->best.cost) && std::isfinite(day->bound) && day->gap >= 0);
}
