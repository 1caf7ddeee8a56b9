// A file of a benchmark tool is read or refused by its name; what was read is fitted to parameters
// that are none below 0, or refused; and these go into any document that can be read.
#include <algorithm>
#include <cmath>

#include "berth/fleet/measurements/benchmark_files.h"
#include "berth/fleet/model/performance_entry.h"
#include "fuzz.h"

namespace {

constexpr std::size_t kMostFitted = 200;  // measurements, so that a run takes no time

std::size_t size_of(const berth::fleet::Measured& measured) {
  std::size_t size = measured.iterations.size() + measured.points.size();
  for (const auto& point : measured.points) {
    size += point.timeline.size();
    for (const auto& request : point.timeline) size += request.gaps_ms.size();
  }
  return size;
}

}  // namespace

void berth::fuzz(std::string_view text) {
  using namespace berth::fleet;
  const auto [benchmark, document] = halves(text);
  const auto file = read_benchmark_file("f", benchmark);
  PerformanceEntry entry{"m", "a", 1, {}};
  if (!file) {
    BERTH_ASSERT(file.error().message.starts_with("f: "));
    BERTH_ASSERT(file.error().kind == ErrorKind::invalid ||
                 file.error().kind == ErrorKind::not_found);
  } else {
    for (const auto& measured : file->measured) {
      if (size_of(measured) > kMostFitted) continue;
      const auto made = fit(measured, {.all = true});
      if (!made) continue;
      for (const double ms : made->parameters.ms) BERTH_ASSERT(ms >= 0 && std::isfinite(ms));
      entry.fit = *made;
    }
  }
  if (const auto once = with_performance(document, entry))
    BERTH_ASSERT(with_performance(*once, entry) == *once);
}
