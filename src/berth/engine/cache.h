// The cache of flows: how much it has, whether it is whole, and what of it is no longer needed.
#pragma once

#include <optional>
#include <vector>

#include "berth/fileset/fileset.h"
#include "berth/run/flows/flow_run.h"

namespace berth::engine {

struct CacheReport {
  fileset::Usage usage;
  std::size_t results = 0;
  std::optional<std::vector<fileset::Damage>> damage;  ///< If it was verified.
  std::optional<run::Collected> collected;             ///< If something was removed.
};
/// Reports on the cache. `verify` reads all entries, and sets damaged ones aside.
/// `collect_unused_for` removes results that were not used for this long, and what only they need.
Result<CacheReport> examine_cache(run::Context& context, bool verify,
                                  std::optional<Duration> collect_unused_for);

}  // namespace berth::engine
