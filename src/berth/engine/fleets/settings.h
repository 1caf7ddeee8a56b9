// Values of a fleet as people write them: settings such as capacity.H100=16, durations, and names
// of solvers. Errors are of the kind usage and start with the option, such as "--set".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/names.h"
#include "berth/base/result.h"
#include "berth/base/text.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/model/names.h"

namespace berth::engine {

/// The path and the text of the value: {"capacity.H100", "16"}.
Result<std::pair<std::string, std::string>> parse_setting(std::string_view option,
                                                          const std::string& text);
Result<double> parse_value(std::string_view option, const std::string& text);
/// fleet::set_value(), with its errors as usage.
Status set_fleet_value(std::string_view option, fleet::System& system, const std::string& path,
                       double value);
/// Applies all values of --set.
Status set_fleet_values(fleet::System& system, const std::vector<std::string>& settings);

/// Reads a duration into seconds; nullopt leaves `to` unchanged.
Status read_seconds(std::string_view option, const std::optional<std::string>& text, double& to);

/// planning_execution() for "simulated" or "closed-form"; it stops once `is_abandoned` returns
/// true.
Result<fleet::Execution> parse_execution(const std::string& percentiles,
                                         std::function<bool()> is_abandoned = {});

/// Reads one of the names; "" leaves `to` unchanged.
template <class Choice, std::size_t kCount>
Status choose(std::string_view option, const std::string& text, const Names<Choice, kCount>& names,
              Choice& to) {
  if (text.empty()) return {};
  const auto chosen = fleet::choice(names, text);
  if (!chosen)
    return fail(ErrorKind::usage, "{}: expected {}; got '{}'", option, listed(names), clip(text));
  to = *chosen;
  return {};
}

}  // namespace berth::engine
