// When those that wait in the machine's ledger get their turn, by how long the others are expected
// to hold what they have. It plays the queue's policy forward: the first that waits starts as soon
// as it fits, and nobody passes it; a run gives back what a task of it had when that ends, if
// somebody waits who would be served before it, else its next task begins there.
//
// What it does not know: who comes yet with a greater priority, by which cards a request is choosy
// (the ledger does not keep that), and what runs take besides of what lies free. A holder of whom
// nothing is known counts as one that never ends, so a start that is told may come sooner. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "berth/machine/ledger/ledger.h"

namespace berth::machine {

/// What is known of a run that holds or waits: of all entries of one user with one label.
struct RunOutlook {
  std::int64_t tasks = 0;              ///< Those not begun, but for what its entries stand for.
  std::optional<Duration> takes = {};  ///< Each of them, and the one that an entry waits to begin.
};

struct EntryOutlook {
  std::size_t run = 0;                ///< Of the RunOutlooks.
  std::optional<Duration> left = {};  ///< Of one that is held: until its present task ends.
};

/// Of an entry that waits.
struct StartForecast {
  std::optional<Duration> start;  ///< From now on; nullopt: nothing tells.
  /// The runs by whose ends it is told; where nothing tells: those of which that would be needed.
  /// By number, ascending. None: it fits now, or, where nothing tells, will not.
  std::vector<std::size_t> by;
};

/// The forecasts of the entries that wait, in their order. `entries` are as Ledger::entries() has
/// them, with an outlook for each.
std::vector<StartForecast> forecast_starts(const Host& host, std::span<const LedgerEntry> entries,
                                           std::span<const EntryOutlook> outlooks,
                                           std::span<const RunOutlook> runs);

}  // namespace berth::machine
