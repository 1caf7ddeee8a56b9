// What the vendors' interfaces report of this machine, before it becomes one topology. Plain values
// for any thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "berth/machine/devices/nvml.h"
#include "berth/os/env.h"
#include "berth/topology/topology.h"

namespace berth::machine {

struct DeviceReading {
  topology::Device device;
  topology::FabricKind fabric = topology::FabricKind::nvlink;
  int generation = 0;                            // of the fabric; 0: unknown
  int switched = 0;                              // links of its own that end on switches
  bool links_told = true;                        // otherwise there may be more links
  std::map<std::size_t, int> direct;             // links of its own, by place of the other end
  std::map<std::size_t, topology::Pcie> levels;  // by place of the other, a later one
  std::vector<DeviceProcess> processes;
};

struct Reading {
  std::vector<DeviceReading> devices;
  std::vector<std::string> sources;  // "NVML", "KFD"
  std::vector<std::string> notes;
  bool partial = false;

  /// Notes something that could not be determined.
  void add_gap(std::string note) {
    partial = true;
    notes.push_back(std::move(note));
  }
};

/// Adds NVIDIA's GPUs and MIG instances. A failure becomes a note, or the bad health of a device.
void read_nvml(Nvml& nvml, Reading& reading);

/// Adds AMD's GPUs from `root`/sys/class/kfd. A failure becomes a note.
void read_kfd(os::Env& env, const std::string& root, Reading& reading);

}  // namespace berth::machine
