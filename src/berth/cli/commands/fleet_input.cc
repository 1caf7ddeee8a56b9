#include "berth/cli/commands/fleet_input.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/print.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostNotes = 20;

}  // namespace

void print_notes(const std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i)
    print_error(fmt::format("note: {}\n", notes[i]));
  if (notes.size() > kMostNotes)
    print_error(fmt::format("note: {} more of the kind\n", notes.size() - kMostNotes));
}

Result<Setting> setting_of(std::string_view option, const std::string& text) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos)
    return fail(ErrorKind::usage, "{}: expected PATH=VALUE, got '{}'", option, clip(text));
  return Setting{text.substr(0, equals), text.substr(equals + 1)};
}

Result<double> number_given(std::string_view option, const std::string& text) {
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
    BERTH_ASSIGN(const auto setting, setting_of("--set", text));
    BERTH_ASSIGN(const double value, number_given("--set", setting.value));
    BERTH_TRY(set_fleet_value("--set", system, setting.path, value));
  }
  return {};
}

}  // namespace berth::cli
