// The topology of a machine within Berth: the public face (berth/topology.h), and the names of its
// enumerations in files. Pure.
#pragma once

#include "berth/base/result.h"
#include "berth/topology.h"

namespace berth::topology {

inline constexpr auto kPcieNames = names<Pcie>({{Pcie::unknown, "?"},
                                                {Pcie::none, "NONE"},
                                                {Pcie::sys, "SYS"},
                                                {Pcie::node, "NODE"},
                                                {Pcie::phb, "PHB"},
                                                {Pcie::pxb, "PXB"},
                                                {Pcie::pix, "PIX"},
                                                {Pcie::board, "BOARD"}});
inline constexpr auto kFabricNames =
    names<FabricKind>({{FabricKind::nvlink, "NV"}, {FabricKind::xgmi, "XGMI"}});
inline constexpr auto kHealthNames = names<Health>(
    {{Health::healthy, "well"}, {Health::unhealthy, "unwell"}, {Health::lost, "gone"}});
inline constexpr auto kVendorNames =
    names<Vendor>({{Vendor::nvidia, "nvidia"}, {Vendor::amd, "amd"}});

}  // namespace berth::topology
