#include "berth/fleet/measurements/measured.h"

#include <algorithm>
#include <numeric>

namespace berth::fleet {
namespace {

/// Sorts the values.
MeasuredFigures figures_of(std::vector<double>& values) {
  MeasuredFigures figures;
  if (values.empty()) return figures;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) {
    figures.mean += value / count;
    figures.square += value * value / count;
  }
  std::ranges::sort(values);
  const auto percentile = [&](double part) {
    const auto at = static_cast<std::size_t>(part * (count - 1) + 0.5);
    return values[std::min(at, values.size() - 1)];
  };
  figures.p95 = percentile(0.95);
  figures.p99 = percentile(0.99);
  return figures;
}

}  // namespace

double RequestTimes::end_ms() const {
  const double decode_ms = gaps_ms.empty() ? itl_ms * std::max(0.0, out_tokens - 1)
                                           : std::accumulate(gaps_ms.begin(), gaps_ms.end(), 0.0);
  return start_ms + ttft_ms + decode_ms;
}

void summarize(OperatingPoint& point, const std::vector<RequestTimes>& requests) {
  std::vector<double> in, out, ttft, itl;
  double gap_ms = 0, gaps = 0, present_ms = 0;
  for (const auto& request : requests) {
    in.push_back(request.in_tokens);
    out.push_back(request.out_tokens);
    ttft.push_back(request.ttft_ms);
    present_ms += request.end_ms() - request.start_ms;
    if (request.out_tokens <= 1) continue;
    itl.push_back(request.itl_ms);
    const double count = request.gaps_ms.empty() ? request.out_tokens - 1
                                                 : static_cast<double>(request.gaps_ms.size());
    gap_ms += request.itl_ms * count;
    gaps += count;
  }
  point.in_tokens = figures_of(in);
  point.out_tokens = figures_of(out);
  point.ttft_ms = figures_of(ttft);
  point.itl_ms = figures_of(itl);
  if (gaps > 0) point.itl_ms.mean = gap_ms / gaps;
  point.requests = static_cast<std::int64_t>(requests.size());
  if (point.duration_s <= 0) return;
  point.rate_per_s = static_cast<double>(requests.size()) / point.duration_s;
  point.concurrency = present_ms / (kSecondMs * point.duration_s);
}

}  // namespace berth::fleet
