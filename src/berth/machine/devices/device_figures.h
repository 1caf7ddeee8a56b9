// How much memory of NVIDIA's devices each process has, as the driver counts it, contexts included:
// what nvidia-smi shows. A separate process (device_program.h) asks by watch_figures().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/devices/nvml.h"
#include "berth/os/env.h"

namespace berth::machine {

struct DeviceFigure {
  std::string uuid;         // of a card or a MIG instance
  pid_t pid = 0;            // as the driver counts it
  std::int64_t memory = 0;  // bytes; 0: unknown
  bool operator==(const DeviceFigure&) const = default;
};

struct DeviceFigures {
  std::vector<DeviceFigure> figures;
  std::vector<std::pair<std::string, std::string>> untold;  // UUID, why its processes are unknown
  std::string because;                                      // why nothing is known; empty: it is
  bool operator==(const DeviceFigures&) const = default;
};

/// Devices whose processes are unknown are in `untold`. Errors: io if the devices cannot be
/// counted.
Result<DeviceFigures> read_figures(Nvml& nvml);

/// JSON in one line without its end. Errors of reading: corrupt if to_json() did not write it.
std::string to_json(const DeviceFigures& figures);
Result<DeviceFigures> figures_of_json(std::string_view line);

/// Writes one line of figures, now and about every `every`, until a stop signal comes or nobody
/// reads any more.
Status watch_figures(os::Env& env, const std::string& nvml_library, Duration every,
                     const os::Fd& out);

}  // namespace berth::machine
