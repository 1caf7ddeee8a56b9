// What tests of days share: a small system, of which all days can be counted out.
#pragma once

#include "berth/fleet/day/day.h"

namespace berth::fleet::testing {

/// Two accelerators for one model; `large` does 2.6 times as much, for 2.5 times the money.
inline System small_system(int servers) {
  System system;
  for (const auto& [name, cost] : {std::pair("large", 250.0), {"small", 100.0}}) {
    Accelerator& accelerator = system.accelerators[name];
    accelerator.type = name;
    accelerator.cost = cost;
  }
  system.models["m"].accelerators["large"] = {
      .max_batch = 64, .at_tokens = 1024, .alpha_ms = 8, .beta_ms = 0.05, .gamma_ms = 0.0001};
  system.models["m"].accelerators["small"] = {
      .max_batch = 64, .at_tokens = 1024, .alpha_ms = 18, .beta_ms = 0.14, .gamma_ms = 0.0003};
  system.classes["c"] = {.priority = 1, .targets = {{"m", {.itl_ms = 40, .ttft_ms = 1000}}}};
  for (int s = 0; s < servers; ++s) {
    Server& server = system.servers[fmt::format("s{}", s)];
    server.service_class = "c";
    server.model = "m";
    server.max_queue = 64;
    server.current.load = {.arrivals_per_min = 60, .in_tokens = 500, .out_tokens = 200};
  }
  system.options.solver = Solver::unlimited;
  return system;
}

inline constexpr double kTooLong = 1e6;  // tokens of a prompt: no accelerator has room for it
inline constexpr double kUnit = 380;     // requests a minute: somewhat less than a small one serves

}  // namespace berth::fleet::testing
