// A check of a whole store: the structure of its file, and each row as commands read it.
//
// Threads: one. Failure: errors of the store other than damage (io, busy, denied).
#pragma once

#include <string>
#include <vector>

#include "berth/store/store.h"

namespace berth::store {

struct Damage {
  std::string what;    ///< One sentence.
  std::string advice;  ///< What to do.
};

struct Checked {
  std::vector<Damage> damages;
  std::int64_t runs = 0, tasks = 0;  ///< How many were read without an error.
};

/// Reads everything in the store. It takes some 20 µs for each task.
Result<Checked> check(Store& store);

/// Returns what SQLite's own check finds in the structure of the store's file, at most 20 lines;
/// nothing for other stores. It is defined next to the SQLite store.
Result<std::vector<std::string>> find_structural_damage(Store& store);

}  // namespace berth::store
