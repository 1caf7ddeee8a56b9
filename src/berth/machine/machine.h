// A Machine is a machine, or a leased block of one, that hands out reservations: all of a request
// or nothing.
//
// Ownership: a Reservation holds a part of its Machine and must not outlive it; it is released
// once, by release() or by its destructor. Threads: a Machine and its reservations belong to one
// thread. Errors: `impossible` if even the empty machine is too small, `busy` if others hold what
// is missing, `stale` for a second or foreign release; after an error everything is as before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/block.h"
#include "berth/machine/devices/device_allocations.h"
#include "berth/machine/devices/device_selection.h"

namespace berth::machine {

/// The maxima that a task asks for; device_shares.h says what the GPU amounts mean.
struct Request {
  Resources resources;
  std::string holder;  // the name in refusals and `berth machine`: "digits-3/17"
  DeviceSelection selection = {};
};

/// The name of a Machine in errors, unless another one was set.
inline constexpr std::string_view kThisMachine = "this machine";

/// What a machine has, as capacity and discovery found it.
struct Host {
  Block total;
  std::shared_ptr<DeviceLinks> links = {};  // null: all devices are joined alike
  /// What processes that are not Berth's use of the devices, with a name for each.
  std::vector<std::pair<std::string, Block>> foreign = {};
};

/// JSON for the log: {"holder":"digits-3/17","resources":{"cpu":1}}.
std::string to_json(const Request& request);

/// The handle of a reservation. No two reservations of a process, whatever their machines, have the
/// same generation (of 2^32), so that an old or foreign handle is recognised.
struct ReservationId {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // 0: none
  bool operator==(const ReservationId&) const = default;
};

class Machine;

/// A part of a Machine. It is move-only and gives everything back when it is destroyed.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : machine_(std::exchange(other.machine_, nullptr)), id_(std::exchange(other.id_, {})) {}
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  explicit operator bool() const { return machine_ != nullptr; }
  ReservationId id() const { return id_; }
  const Block& block() const;
  /// Gives everything back; the handle is empty afterwards. Errors: stale on an empty handle.
  Status release();

 private:
  friend class Machine;
  Reservation(Machine& machine, ReservationId id) : machine_(&machine), id_(id) {}
  Machine* machine_ = nullptr;
  ReservationId id_;
};

class Machine {
 public:
  /// The gpu, gpu_mem and gpu_slots of the machine are those of its devices. `links` may be null:
  /// all devices are joined alike.
  explicit Machine(Block total, std::shared_ptr<DeviceLinks> links = {});
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Reserves all of a request: GPUs first, then cpu and memory, then disk, then a person's own
  /// names. The error names the short resource: wanted, free, total, and who holds the rest.
  Result<Reservation> reserve(const Request& request);
  /// The block that reserve() would give, through the same code; nothing is taken.
  Result<Block> dry_run(const Request& request) const;
  /// Counts a block that is held elsewhere (by another run, through the ledger) as taken, even if
  /// that exceeds the total; names, cores and devices that this machine lacks are ignored. Errors:
  /// impossible if the sum of what is held does not fit 64 bits.
  Result<Reservation> occupy(const Block& block, std::string holder);
  /// Errors: stale if the id was released before, or belongs to another machine.
  Status release(ReservationId id);
  const Block* find(ReservationId id) const;

  const Block& total() const { return total_; }
  const Resources& held() const { return held_; }
  /// Names the machine in errors of requests that exceed it; otherwise it is "this machine".
  void set_name(std::string name) { name_ = std::move(name); }
  /// What is free; 0, never negative, where the total shrank below what is held (see overdrawn()).
  Resources free() const;
  /// What is free, with the cores and devices that it is on.
  Block free_block() const;
  /// What is free of each device, in the order of total().devices.
  std::span<const DeviceShare> free_devices() const { return devices_.free(); }
  /// Whether more of some resource is held than there is now.
  bool overdrawn() const;
  /// Replaces the total. Reservations stay as they are, also on cores that are no longer there.
  void set_total(Block total);

 private:
  struct Slot {
    std::uint32_t generation = 0;  // 0: vacant
    Block block;
    std::string holder;
  };
  Result<Block> plan(const Request& request) const;
  std::int64_t free_of(std::string_view resource) const;
  std::unexpected<Error> refuse_for_good(std::string_view resource, std::int64_t wanted) const;
  std::unexpected<Error> refuse_for_now(std::string_view resource, std::int64_t wanted) const;
  std::string holders_of(std::string_view resource) const;
  Result<Reservation> take(Block block, std::string_view holder);
  Block part_of_ours(const Block& block) const;
  void count(const Block& block, int sign);
  void count(int core, std::int64_t milli);

  std::string name_ = std::string(kThisMachine);
  Block total_;
  Resources held_;
  std::vector<std::int64_t> allocated_;  // thousandths of each of total_.cores that are held
  std::vector<CoreShare> free_cores_;    // what that leaves of them, at least 0
  DeviceAllocations devices_;
  std::shared_ptr<DeviceLinks> links_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> vacant_;
};

}  // namespace berth::machine
