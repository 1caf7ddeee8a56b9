// One simulation: a seed chooses the machines, the runs, what their tasks do and what happens to
// all of them; the whole of Berth runs in it, and its contract is checked after every event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace berth::simulate {

struct Outcome {
  std::optional<std::string> breach;  // the promise that was broken
  std::size_t events = 0, executions = 0, mishaps = 0;
};

/// `trace`: every event is printed.
Outcome simulate(std::uint64_t seed, bool trace = false);

}  // namespace berth::simulate
