// Options of the commands of fleets: settings such as capacity.H100=16, durations, and notes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/names.h"
#include "berth/base/result.h"
#include "berth/base/text.h"
#include "berth/engine/fleets/fleet.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/model/names.h"

namespace berth::cli {

using engine::fleet_documents;
using engine::planning_execution;

/// Prints each note as a line on standard error, and of very many only the first 20.
void print_notes(const std::vector<std::string>& notes);

/// What an option such as --set capacity.H100=16 says.
struct Setting {
  std::string path;
  std::string value;
};
/// Errors: usage, which names the option.
Result<Setting> setting_of(std::string_view option, const std::string& text);
Result<double> number_given(std::string_view option, const std::string& text);
/// fleet::set_value(), with what is wrong as an error of usage.
Status set_fleet_value(std::string_view option, fleet::System& system, const std::string& path,
                       double value);
/// Reads the value of an option with these names; "" leaves `to` as it is. Errors: usage.
template <class Choice, std::size_t kCount>
Status choose(std::string_view option, const std::string& written,
              const Names<Choice, kCount>& names, Choice& to) {
  if (written.empty()) return {};
  const auto found = fleet::choice(names, written);
  if (!found)
    return fail(ErrorKind::usage, "{}: expected {}; got '{}'", option, listed(names),
                clip(written));
  to = *found;
  return {};
}
/// All that --set was given.
Status set_fleet_values(fleet::System& system, const std::vector<std::string>& settings);

}  // namespace berth::cli
