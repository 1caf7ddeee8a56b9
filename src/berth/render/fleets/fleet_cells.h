// Cells of the tables on fleets: costs, latencies with their targets, allocations and changes.
#pragma once

#include <string>
#include <vector>

#include "berth/base/json_writer.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/simulate/served_trace.h"
#include "berth/render/table.h"

namespace berth::render {

std::string figure(double value, int digits = 2);
/// Whole watts; "-" where no power curve is known.
std::string watts_text(double watts);
/// "37.0 / 40.0", or the value alone where there is no target.
std::string against(double value, double target);
/// "37/40", or the value alone where there is no target.
std::string short_against(double value, double target);
/// "was 4 × L4, +110.00", "new, +310.00"; "" where nothing changes.
std::string change_of(const fleet::Allocation& from, const fleet::Allocation& to);
/// "was 4 × L4", "new", "stops 4 × L4"; "" where nothing changes.
std::string short_change(const fleet::Allocation& from, const fleet::Allocation& to);
/// "H100", "H100 + L4", "H100 prefill + L4 decode".
std::string accelerators_of(const fleet::Allocation& allocation);
/// The same of a plan; "-" without accelerators, and " (spot)" after those of spot.
std::string accelerators_text(const fleet::Assignment& planned);
/// Of each part of a mix, such as "8 + 4", or of the whole allocation.
std::string replicas_of(const fleet::Allocation& allocation);
std::string batch_of(const fleet::Allocation& allocation);
/// "p95 TTFT 512.3 / 800.0, p99 ITL 41.0 / 60.0" of the percentiles that have targets.
std::string percentiles_text(const fleet::Percentiles& found, const fleet::Percentiles& targets);
/// The server's name, class, accelerator, replicas, batch, cost, ITL and TTFT with their targets,
/// utilization and change.
std::vector<std::string> assignment_cells(const fleet::System& system, const std::string& name,
                                          const fleet::Assignment& planned);
/// A row for each accelerator of a server whose targets have percentiles, under the heading.
Table percentiles_table(const fleet::System& system, const fleet::Plan& plan,
                        const std::string& heading);
/// "lengths by histogram: assistant, chat" of the servers whose figures rest on one; "" of none.
std::string histograms_text(const std::vector<std::string>& servers);
/// Whether the model counts a histogram of the load.
bool has_histogram(const fleet::Load& load, fleet::QueueModel model);
/// Adds "requests", "lost", "ttftAverage", "itlAverage", "ttftPercentiles", "itlPercentiles" and,
/// where there is a target for TTFT, "withinMs", "within", "worstWithin", "worstAt" (seconds) and
/// "worstRate" (requests a minute).
void write_attainment(JsonWriter& json, const fleet::Attainment& attained);

}  // namespace berth::render
