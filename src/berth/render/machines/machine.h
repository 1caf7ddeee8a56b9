// The report on this machine as text and JSON: resources, limits, devices, and who uses them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/engine/machines/machine.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_json(const engine::MachineReport& report);
std::string to_text(const engine::MachineReport& report, const View& view);

std::string to_json(const engine::LimitsReport& limits);
/// The limits in one line.
std::string to_text(const engine::LimitsReport& limits, const View& view = {});

/// [{"uuid","index","gpu_mem","gpu_slots","whole"}].
std::string to_json(const std::vector<machine::DeviceShare>& shares);

/// A table of the entries of the ledger and the reasons of expected starts; `nobody` without any.
std::string holders_text(const engine::MachineReport& report, std::string_view nobody,
                         const View& view = {});
/// How much of each resource is used, as bars, and by whom.
std::string usage_text(const engine::MachineReport& report, const View& view = {});

/// The page of berth top --once: this machine, and the clusters if there are any.
struct MachineAndClusters {
  const engine::MachineReport& machine;
  std::string clusters_text;
  std::string clusters_json;  ///< An array; "": no clusters.
};
std::string to_text(const MachineAndClusters& page, const View& view);
std::string to_json(const MachineAndClusters& page);

}  // namespace berth::render
