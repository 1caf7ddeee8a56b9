// The types of berth/machine.h from and to those within. Pure.
#pragma once

#include <span>
#include <vector>

#include "berth/machine.h"
#include "berth/machine/block.h"
#include "berth/machine/ledger/ledger.h"
#include "berth/topology.h"

namespace berth::library {

MachinePart part_of(const machine::Block& block);
std::vector<DevicePart> parts_of(std::span<const machine::DeviceShare> shares);
/// The devices as a machine's own code has them; nullptr: they are NVIDIA's. Errors: invalid for
/// one that the topology lacks, and for what is no part of a device.
Result<std::vector<machine::DeviceShare>> shares_of(std::span<const DevicePart> parts,
                                                    const topology::Topology* topology);
DeviceSelection selection_of(const machine::DeviceSelection& selection);
/// Errors: invalid for policies and objectives that are none, and amounts below 0.
Result<machine::DeviceSelection> selection_of(const DeviceSelection& selection);
/// Errors: invalid for a selection of no device, and those of selection_of().
Result<machine::AllocRequest> ask_of(const Request& request);

}  // namespace berth::library
