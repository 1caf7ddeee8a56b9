// Removal of runs that are no longer needed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/engine/context.h"

namespace berth::engine {

/// Checks that a run may be removed: no runner drives it. Returns a sentence for each of its
/// processes and claims that is alive. Errors: not_found; busy, if the run is driven.
Result<std::vector<std::string>> check_removable(Context& context, const std::string& run);

/// Removes runs and ends what is alive of them. Nothing is removed if one of them cannot be.
/// Errors: those of check_removable().
Status remove_runs(Context& context, const std::vector<std::string>& runs);

struct PruneRequest {
  Duration age{};        ///< Only runs without activity for this long.
  std::size_t keep = 0;  ///< The number of the youngest of these runs to keep.
  bool dry_run = false;
};
struct Pruned {
  bool is_dry_run = false;
  Duration age{};
  std::vector<std::string> removed;  ///< The oldest first; of a dry run, what would be removed.
  std::vector<std::string> notes;    ///< One line for each run that was left because it is alive.
};
Result<Pruned> prune_runs(Context& context, const PruneRequest& request);

}  // namespace berth::engine
