#include "berth/cli/shared_options.h"

#include "berth/base/units.h"

namespace berth::cli {

Option add_run(Options& options, std::string& to) {
  return options.value("RUN", to, "such as digits-3").required();
}

Option add_topology(Options& options, std::string& to) {
  return options
      .value("--topology", to,
             "a file (nvidia-smi topo -m, rocm-smi --showtopo, JSON) or a known machine "
             "such as dgx-h100 (default: this machine)")
      .named("TOPOLOGY");
}

Option add_percentiles(Options& options, std::string& to) {
  return options
      .value("--percentiles", to,
             "what decides targets for percentiles: simulated (default) or closed-form")
      .one_of({"simulated", "closed-form"});
}

Result<Duration> age_of(std::string_view option, const std::string& text) {
  if (text.empty()) return std::chrono::hours(24 * 30);
  auto age = parse_age(text);
  if (!age) return std::unexpected(within(std::string(option), std::move(age).error()));
  return age;
}

}  // namespace berth::cli
