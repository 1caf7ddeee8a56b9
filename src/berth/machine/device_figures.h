// How much of NVIDIA's devices each process has, as the driver counts it: contexts and all, what
// nvidia-smi shows. Asked by a process of its own (device_program.h), which watch_figures() is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/nvml.h"
#include "berth/os/env.h"

namespace berth::machine {

struct DeviceFigure {
  std::string uuid;         // of a card or a MIG instance
  pid_t pid = 0;            // as the driver counts it
  std::int64_t memory = 0;  // bytes; 0: not told
  bool operator==(const DeviceFigure&) const = default;
};

struct DeviceFigures {
  std::vector<DeviceFigure> figures;
  std::vector<std::pair<std::string, std::string>> untold;  // UUID, why no process of it is told
  std::string because;                                      // why nothing is told; empty: it is
  bool operator==(const DeviceFigures&) const = default;
};

/// What a card does not tell stands in `untold`; an error where not even the cards can be counted.
Result<DeviceFigures> read_figures(Nvml& nvml);

/// One line without its end; corrupt: not what to_json() writes.
std::string to_json(const DeviceFigures& figures);
Result<DeviceFigures> figures_of_json(std::string_view line);

/// Writes a line of them, now and every `every` or so, until a stop signal comes or nobody reads
/// any more.
Status watch_figures(os::Env& env, const std::string& nvml_library, Duration every,
                     const os::Fd& out);

}  // namespace berth::machine
