// A stream says the same however it is cut; the first byte says into how long pieces.
#include "berth/exec/metrics.h"

#include <cmath>

#include "fuzz.h"

namespace {

using berth::exec::MetricReader;

MetricReader::Reading read(std::string_view text, std::size_t step) {
  MetricReader reader;
  MetricReader::Reading all;
  const auto take = [&](MetricReader::Reading reading) {
    for (auto& metric : reading.metrics) all.metrics.push_back(std::move(metric));
    if (all.unreadable.empty()) all.unreadable = std::move(reading.unreadable);
  };
  for (; !text.empty(); text.remove_prefix(std::min(step, text.size())))
    take(reader.feed(text.substr(0, step)));
  take(reader.finish());
  return all;
}

}  // namespace

void berth::fuzz(std::string_view text) {
  if (text.empty()) return;
  const auto step = static_cast<std::size_t>(static_cast<unsigned char>(text[0])) + 1;
  const auto whole = read(text.substr(1), text.size());
  const auto parted = read(text.substr(1), step);
  BERTH_ASSERT(whole.metrics == parted.metrics && whole.unreadable == parted.unreadable);
  for (const auto& [name, value] : whole.metrics)
    BERTH_ASSERT(std::isfinite(value) && !name.empty() && name.size() <= 128);
}
