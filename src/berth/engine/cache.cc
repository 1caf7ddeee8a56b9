#include "berth/engine/cache.h"

namespace berth::engine {

Result<CacheReport> examine_cache(run::Context& context, bool verify,
                                  std::optional<Duration> collect_unused_for) {
  CacheReport report;
  BERTH_ASSIGN(auto kept, run::open_cache(context));
  if (verify) {
    BERTH_ASSIGN(report.damage.emplace(), kept.verify());
  }
  if (collect_unused_for) {
    BERTH_ASSIGN(report.collected.emplace(), run::collect(context, *collect_unused_for));
  }
  BERTH_ASSIGN(report.usage, kept.usage());
  BERTH_ASSIGN(const auto results, context.store->results(0));
  report.results = results.size();
  return report;
}

}  // namespace berth::engine
