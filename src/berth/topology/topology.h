// Which devices a machine has and what joins them: read from what the vendors' tools print, from
// Berth's own JSON, or from the catalogue of known machines. Discovery on the live machine
// (machine/devices) fills the same structures.
//
// Pure: text in, values out; any thread. Failure: invalid, with the line of the text and what was
// wanted. A file that lacks rows is read and marked `partial`; an unknown link counts as the worst.
// What a reader gives passes check(), its devices in the order of their indices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"

namespace berth::topology {

/// How far apart two PCIe devices are, nearest last. A printed SOC is SYS.
enum class Pcie : std::uint8_t {
  unknown,  // not told: counts as the worst
  none,     // the source shows only the fabric (an NV# or XGMI entry of a printed matrix)
  sys,      // across NUMA nodes
  node,     // across host bridges of one NUMA node
  phb,      // one host bridge
  pxb,      // several PCIe switches
  pix,      // one PCIe switch
  board,    // the same board
};
inline constexpr auto kPcieNames = names<Pcie>({{Pcie::unknown, "?"},
                                                {Pcie::none, "NONE"},
                                                {Pcie::sys, "SYS"},
                                                {Pcie::node, "NODE"},
                                                {Pcie::phb, "PHB"},
                                                {Pcie::pxb, "PXB"},
                                                {Pcie::pix, "PIX"},
                                                {Pcie::board, "BOARD"}});

enum class FabricKind : std::uint8_t { nvlink, xgmi };
inline constexpr auto kFabricNames =
    names<FabricKind>({{FabricKind::nvlink, "NV"}, {FabricKind::xgmi, "XGMI"}});

/// What joins two devices, seen from the first.
struct Link {
  Pcie pcie = Pcie::unknown;
  int fabric = 0;      // how many NVLinks or XGMI links, switched ones too; at most kMostFabric
  int generation = 0;  // of the fabric; 0: not told
  FabricKind kind = FabricKind::nvlink;  // of the fabric; nvlink where there is none
  bool operator==(const Link&) const = default;
};

enum class Health : std::uint8_t { well, unwell, gone };
inline constexpr auto kHealthNames =
    names<Health>({{Health::well, "well"}, {Health::unwell, "unwell"}, {Health::gone, "gone"}});
enum class Vendor : std::uint8_t { nvidia, amd };
inline constexpr auto kVendorNames =
    names<Vendor>({{Vendor::nvidia, "nvidia"}, {Vendor::amd, "amd"}});

struct Device {
  int index = 0;      // as the machine counts it
  std::string uuid;   // "GPU-…"; in files without one "gpu-INDEX"
  std::string pci;    // "0000:3b:00.0"; may be empty
  std::string model;  // "NVIDIA H100 80GB HBM3"; may be empty
  Vendor vendor = Vendor::nvidia;
  std::int64_t memory = 0;  // bytes; 0: not told
  int numa = -1;            // -1: not told
  std::vector<int> cores;   // near ones, ascending; empty: not told
  std::string mig_parent;   // UUID of the card that this is an instance of; empty: a whole card
  Health health = Health::well;
  std::string unwell_because;
  bool operator==(const Device&) const = default;
};

struct Nic {
  std::string name;           // "mlx5_0"
  std::vector<Pcie> devices;  // how near each device is, by place in Topology::devices
  bool operator==(const Nic&) const = default;
};

struct Topology {
  std::string name;    // "dgx-h100", or what the file is called
  std::string source;  // where the figures come from
  std::vector<Device> devices;
  std::vector<Link> links;  // row-major, devices.size() squared; the diagonal is not read
  std::vector<Nic> nics;
  bool partial = false;            // something of it was not told
  std::vector<std::string> notes;  // what, in words

  const Link& link(std::size_t a, std::size_t b) const { return links[a * devices.size() + b]; }
  Link& link(std::size_t a, std::size_t b) { return links[a * devices.size() + b]; }
  bool operator==(const Topology&) const = default;
};

inline constexpr std::size_t kMostDevices = 64;
inline constexpr std::size_t kMostNics = 256;
inline constexpr int kMostFabric = 1000;            // links of one pair: a score stays below 10^6
inline constexpr std::size_t kMostText = 1U << 20;  // bytes of a topology file

/// Score of a pair, the sum over its links: 10 SYS, 20 NODE, 30 PHB, 40 PXB, 50 PIX, 60 same board,
/// 100 for each NVLink or XGMI link; 0 for what is not told.
int score(const Link& link);

/// Links are as many as they should be and the same from both sides, indices and UUIDs are told
/// apart, nothing is more than the bounds above. invalid: names the pair, "GPU0-GPU3: NV2 from one
/// side, SYS from the other".
Status check(const Topology& topology);

/// Any of the formats below, told apart by their look.
Result<Topology> read(std::string_view text, const std::string& name);
/// `nvidia-smi topo -m`: tabs or blanks, ANSI codes, NIC rows and columns, affinity ranges, N/A,
/// legend, missing header or rows. An NV# entry is the fabric alone. A pair that is told from one
/// side is taken so from both; without a header, columns behind the last NVLink are taken for NICs.
Result<Topology> read_nvidia_smi(std::string_view text, const std::string& name);
/// `rocm-smi --showtopo`, old ("GPU 0 :") and new ("GPU[0]") layouts. XGMI is one link, as no count
/// is printed; one of a weight above 15 passes through other GPUs, so it joins no more than PCIE
/// does: NODE within a NUMA node, SYS across. (Weight: 15 a physical XGMI hop, as amd-smi's manual
/// says; the printed hops are 1 for any XGMI path.)
Result<Topology> read_rocm_smi(std::string_view text, const std::string& name);
/// Berth's own; unknown keys are errors. write_json() gives what it reads:
///   {"name", "source",
///    "devices": [{"index", "uuid", "pci", "model", "vendor": nvidia|amd,
///                 "memory": bytes or "80GB", "numa", "cores": "0-19,40-59", "mig_parent",
///                 "health": well|unwell|gone, "unwell_because"}],
///    "links": [["X", "PIX+NV2@2"], ["PIX+NV2@2", "X"]],
///    "nics": [{"name", "devices": ["PIX", "SYS"]}], "partial": true, "notes": []}
/// where only "devices" with their "index" must be. A link is its PCIe level (SYS, NODE, PHB, PXB,
/// PIX, BOARD, ? for unknown), its fabric (NV# or XGMI#, @ its generation where that is told), or
/// both with a plus between them. What `berth topo --json` prints, which has this within, is read
/// too.
Result<Topology> read_json(std::string_view text, const std::string& name);
std::string write_json(const Topology& topology);

/// Names of the catalogue, in order.
std::vector<std::string> catalogue();
/// By its exact name, "dgx1-v100". not_found: suggests the nearest name.
Result<Topology> known_machine(std::string_view name);

/// Throughput slots of a card by its model name: one slot is 10 TFLOP/s of dense 16-bit matrix
/// arithmetic with 32-bit accumulation (V100 13, A100 31, H100 99). A data table (slots.cc), a
/// default of 10 for unknown cards, never 0; a MIG instance has its part of the card. `overrides`
/// (pattern, slots) come first, in order; a pattern is a part of the name, in any case.
int slots_of(std::string_view model,
             const std::vector<std::pair<std::string, int>>& overrides = {});

/// Groups of two and more devices, every pair of which is joined by the fabric, by place,
/// ascending. No device is in two: from the lowest free device a group grows by whichever has the
/// most links into it, while any is joined to all of it. Devices without fabric links are in none.
std::vector<std::vector<std::size_t>> islands(const Topology& topology);

/// The matrix as a person reads it, with the PCIe level and the fabric of each pair ("PIX+NV2"),
/// islands numbered from 1; like `nvidia-smi topo -m`, whose reader reads it back: all of the links
/// but their generation.
std::string matrix_text(const Topology& topology);

}  // namespace berth::topology
