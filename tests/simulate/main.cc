// berth-simulate SECONDS [FIRST_SEED]: simulations until the time is over or a promise is broken;
// berth-simulate --seeds COUNT [FIRST_SEED]: so many.
// BERTH_SEED=N plays that one, and prints what happens.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "simulate/simulation.h"

namespace {

int replay(std::uint64_t seed) {
  const auto outcome = berth::simulate::simulate(seed, true);
  fmt::print("{} events, {} executions, {} mishaps: {}\n", outcome.events, outcome.executions,
             outcome.mishaps, outcome.breach.value_or("the contract holds"));
  return outcome.breach ? 1 : 0;
}

}  // namespace

int main(int count, char** values) {
  using Clock = std::chrono::steady_clock;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (const char* one = std::getenv("BERTH_SEED")) return replay(std::strtoull(one, nullptr, 10));
  const bool by_count = count > 2 && std::string_view(values[1]) == "--seeds";
  const int at = by_count ? 2 : 1;
  const double most = count > at ? std::atof(values[at]) : 60;
  const std::uint64_t first = count > at + 1 ? std::strtoull(values[at + 1], nullptr, 10) : 0;
  const auto began = Clock::now();
  const auto goes_on = [&](std::uint64_t played) {
    return by_count ? static_cast<double>(played) < most
                    : std::chrono::duration<double>(Clock::now() - began).count() < most;
  };
  std::size_t events = 0, executions = 0;
  std::uint64_t played = 0;
  for (; goes_on(played); ++played) {
    const auto outcome = berth::simulate::simulate(first + played);
    events += outcome.events;
    executions += outcome.executions;
    if (!outcome.breach) continue;
    fmt::print("seed {}: {}\nreplay with BERTH_SEED={} berth-simulate\n", first + played,
               *outcome.breach, first + played);
    return 1;
  }
  fmt::print("{} simulations, {} events, {} executions: the contract holds\n", played, events,
             executions);
  return 0;
}
