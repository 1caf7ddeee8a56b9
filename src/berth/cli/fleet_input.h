// What berth plan, simulate and serve hand to the planner: traces from files, settings, and where
// its notes go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/traffic.h"
#include "berth/library/planning.h"
#include "berth/os/env.h"

namespace berth::cli {

using library::fleet_documents;
using library::planning_execution;

/// Reads a trace of requests. Errors: as of files; invalid: compressed, or as fleet::read_trace().
Result<std::vector<fleet::Request>> fleet_trace(os::Env& env, const std::string& path);

/// Prints each note as a line on standard error, and of very many only the first 20.
void print_notes(const std::vector<std::string>& notes);

/// Prints notes on names that refer to nothing, and on missing limits of replicas.
void print_fleet_notes(const fleet::System& system);

/// Notes that the reference model leaves targets for percentiles out, where there are any.
void print_percentiles_note(const fleet::System& system, fleet::QueueModel model);

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
/// All that --set was given.
Status set_fleet_values(fleet::System& system, const std::vector<std::string>& settings);

}  // namespace berth::cli
