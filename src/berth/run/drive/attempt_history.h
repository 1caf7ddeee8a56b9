// What the ends of a task's earlier attempts mean for its next one: its number, the memory that it
// asks for, and whether it takes one of the task's retries. The records of the store are the one
// source: a resume counts them anew and comes to the same.
//
// Attempts are numbered as retries are counted: what a lost machine or runner cut short, or never
// began, is repeated under its number. So the numbers go from 1 to retries + 1.
#pragma once

#include <cstdint>
#include <string>

#include "berth/run/drive/workload.h"
#include "berth/store/store.h"

namespace berth::run {

/// What an attempt asked for, as the store keeps it; nothing where that cannot be read.
Resources recorded_resources(const std::string& json);

/// Whether an attempt that ended so failed by itself.
bool is_own_failure(exec::Cause cause);

struct AttemptHistory {
  std::int64_t failures = 0;  ///< Ends that took one of the task's retries.
  std::int64_t oom_mem = 0;   ///< The most memory that an attempt had when it ran out of it.
  Resources had{};            ///< What the last of these had.
  /// All that the largest machine has, found out when none had what the next attempt was to get.
  Resources bound{};

  /// The number of the attempt that runs, or of the next one.
  std::int64_t attempt() const { return failures + 1; }
  /// `forgiven`: the attempt takes no retry any more; that it ran out of memory is still known.
  void add(exec::Cause cause, const Resources& resources, bool forgiven = false);
  bool operator==(const AttemptHistory&) const = default;
};

/// That of a task which has recorded attempts and is not final.
Result<AttemptHistory> history_of(store::Store& store, RunId run, const store::TaskRecord& task);
/// The number of the attempt of that token.
Result<std::int64_t> number_of_attempt(store::Store& store, RunId run,
                                       const store::TaskRecord& task, Token token);

/// What the next attempt asks for where the file says `wanted`: after an end for want of memory
/// twice what that attempt had. Never more than `machine` has, or than the first attempt was to
/// have; an empty `machine` is not known, and bounds nothing.
Resources grown(Resources wanted, const Resources& first, const AttemptHistory& history,
                const Resources& machine);

/// What is told of an end after which the next attempt, `next`, asks for something else. Empty
/// where it asks for the same.
std::string growth_text(const exec::Ended& ended, const ResourceRequest& before,
                        const ResourceRequest& after, std::int64_t next);

}  // namespace berth::run
