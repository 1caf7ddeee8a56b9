#include "berth/cli/fleet_view.h"

#include <vector>

#include "berth/base/text.h"

namespace berth::cli {

std::string figure(double value, int digits) {
  return fmt::format("{:.{}f}", value, digits);
}

std::string watts_text(double watts) {
  return watts > 0 ? figure(watts, 0) : "-";
}

std::string against(double value, double target) {
  return target > 0 ? fmt::format("{} / {}", figure(value, 1), figure(target, 1))
                    : figure(value, 1);
}

std::string change_of(const fleet::Allocation& from, const fleet::Allocation& to) {
  const auto before = fleet::in_words(from);
  if (before == fleet::in_words(to)) return "";
  return fmt::format("{}, {:+.2f}", before.empty() ? "new" : "was " + before, to.cost - from.cost);
}

std::string percentiles_text(const fleet::Percentiles& found, const fleet::Percentiles& targets) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < fleet::kPercentiles.size(); ++i) {
    const auto add = [&](std::string_view figure_name, double is, double target) {
      if (target > 0)
        parts.push_back(
            fmt::format("{} {} {}", fleet::kPercentileNames[i], figure_name, against(is, target)));
    };
    add("TTFT", found.ttft_ms[i], targets.ttft_ms[i]);
    add("ITL", found.itl_ms[i], targets.itl_ms[i]);
  }
  return join(parts, ", ");
}

}  // namespace berth::cli
