// The cache: one object store for all runs, and what of it is still needed.
#include "berth/base/text.h"
#include "berth/run/flow_run.h"

namespace berth::run {

Result<fileset::ObjectStore> open_cache(Site& site) {
  return fileset::ObjectStore::open(*site.env, cache_directory(site.state_directory));
}

Result<Collected> collect(Site& site, Duration unused_for) {
  BERTH_ASSIGN(auto cache, open_cache(site));
  Collected collected;
  BERTH_ASSIGN(collected.results,
               site.store->forget_results(site.env->wall() - std::max(unused_for, Duration{})));
  std::int64_t last = 0;
  const auto add_live = [&](std::unordered_set<Digest>& live) -> Status {
    BERTH_ASSIGN(const auto results, site.store->results(last));
    for (const auto& result : results) {
      last = result.sequence;
      // One that cannot be read is as good as none: its task runs again.
      const auto outputs = parse_outputs(result.outputs);
      if (!outputs) continue;
      for (const auto& output : *outputs) fileset::add_live(live, output);
    }
    return {};
  };
  BERTH_ASSIGN(collected.objects, cache.collect(add_live));
  return collected;
}

}  // namespace berth::run
