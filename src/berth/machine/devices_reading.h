// What the vendors' sources tell of this machine, before it is made one topology. Values; any
// thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "berth/machine/nvml.h"
#include "berth/os/env.h"
#include "berth/topology/topology.h"

namespace berth::machine {

struct SeenDevice {
  topology::Device device;
  topology::FabricKind fabric = topology::FabricKind::nvlink;
  int generation = 0;                            // of the fabric; 0: not told
  int switched = 0;                              // links of its own that end on switches
  bool links_told = true;                        // else there may be more than these
  std::map<std::size_t, int> direct;             // links of its own, by place of the other end
  std::map<std::size_t, topology::Pcie> levels;  // by place of the other, a later one
  std::vector<DeviceProcess> processes;
};

struct Reading {
  std::vector<SeenDevice> devices;
  std::vector<std::string> sources;  // "NVML", "KFD"
  std::vector<std::string> notes;
  bool partial = false;

  /// That something could not be told.
  void lack(std::string note) {
    partial = true;
    notes.push_back(std::move(note));
  }
};

/// Adds NVIDIA's cards and MIG instances. Failure is a note, or a device's bad health.
void read_nvml(Nvml& nvml, Reading& reading);

/// Adds AMD's cards from `root`/sys/class/kfd. Failure is a note.
void read_kfd(os::Env& env, const std::string& root, Reading& reading);

}  // namespace berth::machine
