#include "berth/engine/fleets/settings.h"

#include "berth/base/units.h"
#include "berth/engine/fleets/fleet.h"

namespace berth::engine {

Result<std::pair<std::string, std::string>> parse_setting(std::string_view option,
                                                          const std::string& text) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos)
    return fail(ErrorKind::usage, "{}: expected PATH=VALUE, got '{}'", option, clip(text));
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<double> parse_value(std::string_view option, const std::string& text) {
  const auto number = parse_number(text);
  if (!number) return fail(ErrorKind::usage, "{}: {}", option, number.error().message);
  return *number;
}

Status set_fleet_value(std::string_view option, fleet::System& system, const std::string& path,
                       double value) {
  auto status = fleet::set_value(system, path, value);
  if (!status) return fail(ErrorKind::usage, "{}: {}", option, status.error().message);
  return {};
}

Status set_fleet_values(fleet::System& system, const std::vector<std::string>& settings) {
  for (const auto& text : settings) {
    BERTH_ASSIGN(const auto setting, parse_setting("--set", text));
    BERTH_ASSIGN(const double value, parse_value("--set", setting.second));
    BERTH_TRY(set_fleet_value("--set", system, setting.first, value));
  }
  return {};
}

Status read_seconds(std::string_view option, const std::optional<std::string>& text, double& to) {
  if (!text) return {};
  const auto duration = parse_duration(*text);
  if (!duration) return fail(ErrorKind::usage, "{}: {}", option, duration.error().message);
  to = std::chrono::duration<double>(*duration).count();
  return {};
}

Result<fleet::Execution> parse_execution(const std::string& percentiles,
                                         std::function<bool()> is_abandoned) {
  if (percentiles != "simulated" && percentiles != "closed-form")
    return fail(ErrorKind::usage, "--percentiles: expected simulated or closed-form, got '{}'",
                clip(percentiles));
  auto execution = planning_execution(percentiles);
  execution.stop = std::move(is_abandoned);
  return execution;
}

}  // namespace berth::engine
