// When those that wait in this machine's ledger are expected to start: the queue played forward
// (machine/ledger/queue_forecast.h) with how long the tasks of this user's runs take
// (task_times.h). Of what other users run nothing is known.
//
// Threads: one. Failure: what cannot be read counts as unknown.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/run/state/context.h"

namespace berth::run {

struct ExpectedStart {
  std::optional<Wall> at;  ///< nullopt: nothing tells.
  bool is_most = false;    ///< A time limit tells it: then at the latest.
  /// What it is founded on, or why nothing is known, as the end of a sentence.
  std::string because;
};

/// For the entries that wait, in their order. `entries` are as Ledger::entries() has them.
std::vector<ExpectedStart> expected_starts(Context& context, const machine::Host& host,
                                           std::span<const machine::LedgerEntry> entries);

/// "starts ~4m", "starts <1h" (at most), "starts ?".
std::string to_text(const ExpectedStart& start, Wall now);

}  // namespace berth::run
