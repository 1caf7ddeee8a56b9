// What this process may use of this machine, and reservations of it: all of a request or nothing.
// Reservations stand in the machine's ledger, which every user and every run of Berth shares
// without a daemon, so that two programs never get the same core, byte or GPU.
//
//   auto machine = berth::Machine::open();
//   berth::Request request{.resources = {}, .label = "train"};
//   request.resources.set("cpu", 2000);                 // thousandths of a core
//   request.resources.set("gpu", 1);
//   auto held = machine->reserve(request, std::chrono::minutes(10));   // waits its turn
//   if (!held) return berth::exit_code(held.error().kind);
//   for (auto& [name, value] : held->environment()) setenv(name.c_str(), value.c_str(), 1);
//
// Units: as resources.h; times are since 1970 UTC. Ownership: a Reservation is move-only and gives
// everything back once, by release() or its destructor; it may outlive its Machine, but not the
// process: what a dead process held is free for whoever looks next. Threads: a Machine and all of
// its reservations belong to one thread at a time, also when the Machine is gone, for they share
// its ledger; machines are independent of each other. Errors:
// impossible, where the empty machine is too small; busy, where others hold what is missing, whom
// the message names; io and denied of the ledger's directory. After an error all is as before.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "berth/error.h"
#include "berth/placement.h"
#include "berth/resources.h"

namespace berth {

/// Thousandths of one core.
struct CorePart {
  int core = 0;
  int node = 0;  ///< NUMA
  int milli = 0;
};

/// A GPU or a MIG instance, or a part of one.
struct DevicePart {
  std::string uuid;
  int index = 0;
  int node = -1;            ///< NUMA; -1: unknown.
  std::int64_t memory = 0;  ///< Bytes.
  int slots = 0;            ///< As topology::slots_of().
  bool whole = true;        ///< Nobody else has a part of it.
};

/// A concrete part of the machine: all of it, what is free, or what somebody holds.
struct MachinePart {
  Resources resources;
  std::vector<CorePart> cores{};
  std::vector<DevicePart> devices{};
};

/// Which devices a request accepts, beside its amounts, and how it chooses among them.
struct DeviceSelection {
  std::vector<int> slot_sizes{};  ///< The slots that a device may have; empty: any.
  std::int64_t memory_min = 0;    ///< Bytes that a device has at least, held or free.
  placement::PolicyKind policy = placement::PolicyKind::packed;
  placement::Objective objective = placement::Objective::sum;
  std::vector<std::string> required{};  ///< Indices or UUIDs of devices that must be among them.
};

/// What is asked for. With `gpu` alone the devices are whole; with `gpu_mem` or `gpu_slots` it is a
/// part of one device, or of as many as `gpu` says, each of which gives that much.
struct Request {
  Resources resources;
  std::string label;          ///< Shown to others: "digits-3". At most 200 bytes are kept.
  std::int64_t priority = 0;  ///< The greater goes first, where several wait.
  DeviceSelection selection{};
};

/// Somebody who holds a part, or waits for one.
struct Holder {
  std::string label;
  std::int64_t pid = 0;
  std::uint32_t user = 0;
  bool waiting = false;
  std::chrono::milliseconds since{};  ///< Since 1970 UTC.
  MachinePart part;                   ///< Of one who waits: what is asked for, without cores.
};

struct Capacity {
  MachinePart total;  ///< Under all limits: affinity, cpusets, quotas, memory limits, the volume.
  MachinePart free;   ///< 0, never negative, where a limit shrank below what is held.
  bool overdrawn = false;          ///< More is held than there is now.
  std::string cpu_from, mem_from;  ///< The limit that binds: "affinity", "cgroup limit of /x/y".
  std::vector<std::pair<std::string, std::string>> out_of_service;  ///< Device's UUID, reason.
  std::vector<std::string> notes;  ///< What could not be read, for people.
};

struct MachineOptions {
  std::string disk_directory{};  ///< Whose volume is the disk; "": the working directory.
  std::string machine_file{};    ///< Soft limits and names of one's own (YAML); "": none.
  std::string ledger{};          ///< Its directory; "": $BERTH_LEDGER, or /run/lock/berth.
};

class BERTH_EXPORT Reservation {
 public:
  Reservation(Reservation&&) noexcept;
  Reservation& operator=(Reservation&&) noexcept;  ///< Gives back what it held, as ~Reservation().
  /// Gives it back. Where that fails (the ledger cannot be written, say) nobody is told, and it is
  /// held until the process ends: who has to know calls release().
  ~Reservation();

  const MachinePart& part() const;
  /// The variables that make exactly these devices visible to a process: CUDA_VISIBLE_DEVICES,
  /// NVIDIA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES, by UUID. Without devices none are visible.
  std::vector<std::pair<std::string, std::string>> environment() const;
  /// After stale it holds nothing: it was released before, or moved from. After any other error it
  /// is still held, and may be released again.
  Status release();

 private:
  friend class Machine;
  struct State;
  explicit Reservation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class BERTH_EXPORT Machine {
 public:
  /// Discovers GPUs (which may take seconds) and opens the ledger. BERTH_TOPOLOGY stands in for the
  /// hardware, and CUDA_VISIBLE_DEVICES and its like narrow it. Within a task of Berth the machine
  /// is what the task was given.
  static Result<Machine> open(const MachineOptions& options = {});
  Machine(Machine&&) noexcept;
  Machine& operator=(Machine&&) noexcept;
  ~Machine();

  /// Reads the limits, the ledger and the health of the devices anew, which may take seconds where
  /// there are GPUs. The other calls read limits and ledger, and take the health that was read
  /// last.
  Result<Capacity> capacity();
  /// Those who hold, then those who wait, in the order of service.
  Result<std::vector<Holder>> holders();
  /// Takes GPUs first, then cores and memory, then disk. Where others hold what is missing it waits
  /// up to `wait`, first come, first served within a priority, and then is busy.
  Result<Reservation> reserve(const Request& request, std::chrono::milliseconds wait = {});
  /// What reserve() would give now, by the same code; nothing is taken.
  Result<MachinePart> dry_run(const Request& request);

 private:
  friend class Reservation;
  struct State;
  explicit Machine(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace berth
