// The machine's devices as runs use them: read once, kept up to date by news of their health and of
// who else computes on them.
//
// Reading asks the drivers, which may take seconds: done once before anything is placed, and from
// then on by a process of its own (health_watch.h). Values otherwise; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/capacity.h"
#include "berth/machine/devices.h"
#include "berth/machine/machine.h"

namespace berth::machine {

/// A process that is not of any alloc.
struct ForeignUse {
  std::string uuid;  // of the device
  pid_t pid = 0;
  std::string program;      // "python3"; "" where it cannot be seen
  std::int64_t memory = 0;  // bytes of the device; 0: not told
  bool operator==(const ForeignUse&) const = default;
};

struct DeviceNews {
  std::vector<std::pair<std::string, std::string>> out_of_service;  // UUID, why
  std::vector<ForeignUse> foreign;
  bool operator==(const DeviceNews&) const = default;
};

struct Devices {
  topology::Topology topology;         // as read first: what later health is compared with
  std::vector<DeviceShare> shares;     // of those that this process may use, well or not
  std::vector<int> hidden;             // indices of those that the environment keeps from it
  std::shared_ptr<DeviceLinks> links;  // null: no devices
  DeviceNews news;
};

/// Of the hardware or BERTH_TOPOLOGY; CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES and
/// ROCR_VISIBLE_DEVICES narrow either. Within a container NVIDIA_VISIBLE_DEVICES is not asked about
/// the hardware, as the container's runtime has applied it. `ledger_directory`: whose processes are
/// known to be of an alloc. Errors as of discover_devices().
Result<Devices> read_devices(os::Env& env, const DeviceOptions& options,
                             const std::string& ledger_directory);

/// How they are now.
Result<DeviceNews> read_news(os::Env& env, const DeviceOptions& options,
                             const topology::Topology& first, const std::string& ledger_directory);

/// The host that capacity and devices make; devices that are out of service are not in it.
/// `devices` may be null: none.
Host host_of(const Capacity& capacity, const Devices* devices);

/// "GPU3", by the UUID of a device.
std::string name_of(const Devices& devices, std::string_view uuid);
/// "; out of service: GPU3 (3 uncorrected ECC errors)", "; hidden by CUDA_VISIBLE_DEVICES or its
/// like: GPU0, GPU1"; empty where Berth may use all.
std::string unusable_text(const Devices& devices);

/// One line without its end; corrupt: not what to_json() writes.
std::string to_json(const DeviceNews& news);
Result<DeviceNews> news_of_json(std::string_view line);

}  // namespace berth::machine
