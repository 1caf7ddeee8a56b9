// NVIDIA's management library behind an interface, so that a fake can replace it.
//
// Ownership: handles are valid as long as the Nvml that gave them. Threads: one at a time. What a
// GPU or driver does not support is nullopt. Errors: not_found if the GPU has fallen off the bus or
// needs a reset, denied, or io, with NVIDIA's words.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/topology/topology.h"

struct nvmlDevice_st;

namespace berth::machine {

struct NvmlLink {
  enum class End : std::uint8_t { gpu, npu, nvswitch, unknown };
  End end = End::unknown;
  std::string pci;     // of what is at the other end, as pci_address() writes it; may be empty
  int generation = 0;  // 0: unknown
};

struct DeviceProcess {
  pid_t pid = 0;            // as the host counts it
  std::int64_t memory = 0;  // bytes; 0: unknown
};

class Nvml {
 public:
  using Handle = nvmlDevice_st*;
  template <class T>
  using Reported = Result<std::optional<T>>;

  virtual ~Nvml() = default;

  virtual Result<unsigned> count() = 0;
  virtual Result<Handle> card(unsigned index) = 0;
  virtual Result<std::string> uuid(Handle device) = 0;
  virtual Reported<std::string> model(Handle device) = 0;
  virtual Reported<std::string> pci(Handle device) = 0;      // as pci_address() writes it
  virtual Reported<std::int64_t> memory(Handle device) = 0;  // bytes, of a card or a MIG instance
  virtual Reported<std::vector<int>> cores(Handle device) = 0;  // near ones, ascending
  virtual Reported<std::vector<int>> nodes(Handle device) = 0;  // near NUMA nodes, ascending
  virtual Reported<topology::Pcie> level(Handle one, Handle other) = 0;
  /// nullopt: there is no link of this number, or it is down. Numbers are below kMostNvlinks.
  virtual Reported<NvmlLink> link(Handle card, unsigned number) = 0;
  virtual Reported<std::int64_t> uncorrected_errors(
      Handle card) = 0;  // since the driver was loaded
  /// Why its memory needs a reset or a repair; empty: it does not.
  virtual Reported<std::string> memory_fault(Handle card) = 0;
  virtual Reported<bool> mig_enabled(Handle card) = 0;
  virtual Reported<unsigned> most_instances(Handle card) = 0;
  virtual Reported<Handle> instance(Handle card,
                                    unsigned index) = 0;  // nullopt: none has this index
  virtual Reported<std::vector<DeviceProcess>> processes(Handle device) = 0;  // that compute on it
};

inline constexpr unsigned kMostNvlinks = 36;  // a card has 18 today

/// The real one: opens `library` ("libnvidia-ml.so.1", or a path) and starts it. not_found: it
/// cannot be opened; invalid: it lacks a function that nothing works without; io: it does not start
/// (no driver, or one of another version). Functions that it lacks otherwise tell nothing.
Result<std::unique_ptr<Nvml>> open_nvml(const std::string& library);

}  // namespace berth::machine
