// The cache is one object store for all runs. Objects that nobody needs any more are collected.
#include "berth/remote/transfer/elsewhere.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/flows/placed_outputs.h"

namespace berth::run {

Result<fileset::ObjectStore> open_cache(Context& context) {
  return fileset::ObjectStore::open(*context.env, cache_directory(context.state_directory));
}

Result<Collected> collect(Context& context, Duration unused_for) {
  BERTH_ASSIGN(auto cache, open_cache(context));
  Collected collected;
  BERTH_ASSIGN(collected.results, context.store->forget_results(context.env->wall() -
                                                                std::max(unused_for, Duration{})));
  std::int64_t last = 0;
  const Wall used_since = context.env->wall() - std::max(unused_for, Duration{});
  const auto add_live = [&](std::unordered_set<Digest>& live) -> Status {
    if (last == 0)
      BERTH_TRY(remote::keep_fetched(*context.env, cache.directory(), used_since, live));
    BERTH_ASSIGN(const auto results, context.store->results(last));
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
  BERTH_TRY(PlacedOutputs(cache.directory()).collect(*context.env));
  return collected;
}

}  // namespace berth::run
