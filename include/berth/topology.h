// The topology of a machine: its devices and what joins them. It is read from this machine, from
// the output of the vendors' tools, from Berth's own JSON, or from the catalogue of known machines.
//
//   auto machine = berth::topology::known_machine("dgx1-v100");
//   std::cout << berth::topology::matrix_text(*machine);
//   const berth::topology::Link& link = machine->link(0, 3);  // link.fabric == 2 NVLinks
//
// Units: bytes. Threads: every function may be called on any thread; values belong to the caller,
// and nothing is kept. Errors: invalid, with the line of the text and what was wanted. A file that
// lacks rows is read and marked `partial`; an unknown link counts as the worst. What a reader
// returns passes check(), and its devices are in the order of their indices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/error.h"

namespace berth::topology {

/// How near two PCIe devices are to each other, the nearest last. A printed SOC is SYS.
enum class Pcie : std::uint8_t {
  unknown,  // the source does not say; it counts as the worst
  none,     // the source shows only the fabric (an NV# or XGMI entry of a printed matrix)
  sys,      // across NUMA nodes
  node,     // across host bridges of one NUMA node
  phb,      // one host bridge
  pxb,      // several PCIe switches
  pix,      // one PCIe switch
  board,    // the same board
};

enum class FabricKind : std::uint8_t { nvlink, xgmi };

/// What joins two devices, seen from the first.
struct Link {
  Pcie pcie = Pcie::unknown;
  int fabric = 0;      // number of NVLinks or XGMI links, also switched ones; at most kMostFabric
  int generation = 0;  // of the fabric; 0: unknown
  FabricKind kind = FabricKind::nvlink;  // of the fabric; nvlink if there is none
  bool operator==(const Link&) const = default;
};

enum class Health : std::uint8_t { healthy, unhealthy, lost };
enum class Vendor : std::uint8_t { nvidia, amd };

struct Device {
  int index = 0;      // as the machine counts it
  std::string uuid;   // "GPU-…"; in files without one "gpu-INDEX"
  std::string pci;    // "0000:3b:00.0"; may be empty
  std::string model;  // "NVIDIA H100 80GB HBM3"; may be empty
  Vendor vendor = Vendor::nvidia;
  std::int64_t memory = 0;  // bytes; 0: unknown
  int numa = -1;            // -1: unknown
  std::vector<int> cores;   // the near CPU cores, ascending; empty: unknown
  std::string mig_parent;   // UUID of the GPU that this is a MIG instance of; empty: a whole GPU
  Health health = Health::healthy;
  std::string unhealthy_reason;
  bool operator==(const Device&) const = default;
};

struct Nic {
  std::string name;           // "mlx5_0"
  std::vector<Pcie> devices;  // how near each device is, in the order of Topology::devices
  bool operator==(const Nic&) const = default;
};

struct Topology {
  std::string name;    // "dgx-h100", or the name of the file
  std::string source;  // where the data come from
  std::vector<Device> devices;
  std::vector<Link> links;  // row-major, devices.size() squared; the diagonal is not read
  std::vector<Nic> nics;
  bool partial = false;            // the source lacks something
  std::vector<std::string> notes;  // what it lacks, for people

  const Link& link(std::size_t a, std::size_t b) const { return links[a * devices.size() + b]; }
  Link& link(std::size_t a, std::size_t b) { return links[a * devices.size() + b]; }
  bool operator==(const Topology&) const = default;
};

inline constexpr std::size_t kMostDevices = 64;
inline constexpr std::size_t kMostNics = 256;
inline constexpr int kMostFabric = 1000;            // links of one pair: a score stays below 10^6
inline constexpr std::size_t kMostText = 1U << 20;  // bytes of a topology file

/// The score of a pair, the sum over its links: 10 SYS, 20 NODE, 30 PHB, 40 PXB, 50 PIX, 60 same
/// board, 100 for each NVLink or XGMI link; 0 for what is unknown.
BERTH_EXPORT int score(const Link& link);

/// Checks that the matrix of links is complete and symmetric, that indices and UUIDs are unique,
/// and that the bounds above hold. Errors: invalid, with the pair: "GPU0-GPU3: NV2 from one side,
/// SYS from the other".
BERTH_EXPORT Status check(const Topology& topology);

/// Reads any of the formats below, and `amd-smi topology` (text or --json), which it recognises by
/// their contents. Of amd-smi, PCIE of two hops (through one CPU) is NODE and of more SYS, as it
/// prints no NUMA nodes; its XGMI is as read_rocm_smi() has it.
BERTH_EXPORT Result<Topology> read(std::string_view text, const std::string& name);
/// `nvidia-smi topo -m`: tabs or blanks (also non-breaking ones), ANSI codes, NIC rows and columns,
/// affinity ranges, N/A, legend, missing header or rows, lines that were wrapped, and heads or
/// cells without a blank between them. An NV# entry is the fabric alone. A pair that only one of
/// its rows has is symmetric; without a header, columns behind the last NVLink are taken for NICs.
BERTH_EXPORT Result<Topology> read_nvidia_smi(std::string_view text, const std::string& name);
/// `rocm-smi --showtopo`, old ("GPU 0 :") and new ("GPU[0]") layouts. XGMI is one link, as no count
/// is printed; one of a weight above 15 passes through other GPUs, so it joins no more than PCIE
/// does: NODE within a NUMA node, SYS across. (Weight: 15 a physical XGMI hop, as amd-smi's manual
/// says; the printed hops are 1 for any XGMI path.)
BERTH_EXPORT Result<Topology> read_rocm_smi(std::string_view text, const std::string& name);
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
BERTH_EXPORT Result<Topology> read_json(std::string_view text, const std::string& name);
BERTH_EXPORT std::string write_json(const Topology& topology);

/// This machine's devices: NVIDIA's through NVML, in the driver's order, with MIG instances in
/// place of their GPU; then AMD's through the kernel's KFD. What a driver does not report is in
/// `notes`. The variable BERTH_TOPOLOGY (a name of the catalogue, or a topology file) replaces the
/// hardware. A call may take as long as the drivers do (seconds). A machine without any has no
/// devices, which is no error. Errors: invalid and not_found for BERTH_TOPOLOGY; invalid for
/// devices that are inconsistent.
BERTH_EXPORT Result<Topology> discover();
/// A machine of the catalogue by its name, or the topology file of that path. Errors: not_found,
/// invalid.
BERTH_EXPORT Result<Topology> named(const std::string& name_or_path);
/// What has changed since `earlier` was discovered: the same topology with the present health of
/// its devices (by UUID) and the reasons. Unhealthy: uncorrected ECC errors, memory that needs a
/// reset, fewer links than in `earlier`. Lost: off the bus, or no longer listed. A device may
/// recover, so compare with the first reading always.
BERTH_EXPORT Result<Topology> refresh_health(const Topology& earlier);

/// The names of the catalogue, in order.
BERTH_EXPORT std::vector<std::string> catalogue();
/// The machine of that exact name, "dgx1-v100". Errors: not_found, which suggests the nearest name.
BERTH_EXPORT Result<Topology> known_machine(std::string_view name);

/// The throughput slots of a GPU by its model name: one slot is 10 TFLOP/s of dense 16-bit matrix
/// arithmetic with 32-bit accumulation (V100 13, A100 31, H100 99). slots.cc has the table; an
/// unknown GPU has 10, never 0; a MIG instance has its part of the GPU. `overrides` (pattern,
/// slots) come first, in order; a pattern is a part of the name, in any case.
BERTH_EXPORT int slots_of(std::string_view model,
                          const std::vector<std::pair<std::string, int>>& overrides = {});

/// The islands: groups of two and more devices in which the fabric joins every pair, as ascending
/// positions. No device is in two islands: from the lowest free device an island grows by the
/// device with the most links into it that is joined to all of it. Devices without fabric links are
/// in none.
BERTH_EXPORT std::vector<std::vector<std::size_t>> islands(const Topology& topology);

/// The matrix for people, with the PCIe level and the fabric of each pair ("PIX+NV2") and islands
/// numbered from 1. read_nvidia_smi() reads it back: all of the links but their generation.
BERTH_EXPORT std::string matrix_text(const Topology& topology);

}  // namespace berth::topology
