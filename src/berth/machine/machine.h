// A machine, or a leased block of one, handing out reservations: all of a request or nothing.
//
// Ownership: a Reservation holds a part of its Machine and must not outlive it; it is released
// once, by release() or by its end. Threads: a Machine and its reservations belong to one thread.
// Failure: `impossible` when even the empty machine is too small, `busy` when others hold it,
// `stale` for a second or foreign release; after an error everything is as before.
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
#include "berth/machine/device_loans.h"
#include "berth/machine/device_selection.h"

namespace berth::machine {

/// What a task may ask for, at most; devices.h says what its GPU parts mean.
struct Request {
  Resources resources;
  std::string holder;  // who asks, as refusals and `berth machine` name it: "digits-3/17"
  DeviceSelection selection = {};
};

/// A machine as it can be divided.
struct Host {
  Block total;
  std::shared_ptr<DeviceLinks> links = {};  // null: all devices are alike
  /// What processes that are not Berth's have of the devices, and who they are.
  std::vector<std::pair<std::string, Block>> foreign = {};
};

/// For the log: {"holder":"digits-3/17","resources":{"cpu":1}}.
std::string to_json(const Request& request);

/// Handle of what one holder has. No two reservations of a process, whatever their machines, have
/// the same generation (of 2^32), so that an old or a foreign one is never mistaken.
struct ReservationId {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // 0: none
  bool operator==(const ReservationId&) const = default;
};

class Machine;

/// Move-only; gives everything back when it goes.
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
  /// stale on an empty handle; the handle is empty afterwards.
  Status release();

 private:
  friend class Machine;
  Reservation(Machine& machine, ReservationId id) : machine_(&machine), id_(id) {}
  Machine* machine_ = nullptr;
  ReservationId id_;
};

class Machine {
 public:
  /// Its gpu, gpu_mem and gpu_slots are those of its devices. `links` may be null: all are alike.
  explicit Machine(Block total, std::shared_ptr<DeviceLinks> links = {});
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// GPU first, then cpu and memory, then disk, then a person's own names. The refusal names the
  /// short resource: wanted, free, total, and who holds the rest.
  Result<Reservation> reserve(const Request& request);
  /// What reserve() would have given, through the same path; nothing is taken.
  Result<Block> dry_run(const Request& request) const;
  /// Counts a block that is held elsewhere (by another run, through the ledger) as taken, even
  /// where that is more than there is; names, cores and devices that are not ours are passed over,
  /// and so is what lies on them. impossible: the sum of what is held does not fit 64 bits.
  Result<Reservation> occupy(const Block& block, std::string holder);
  /// stale: the id was released before, or is not ours.
  Status release(ReservationId id);
  const Block* find(ReservationId id) const;

  const Block& total() const { return total_; }
  const Resources& held() const { return held_; }
  /// Never negative: 0 where a shrunken total is under what is held, see overdrawn().
  Resources free() const;
  /// That with the cores and devices it lies on.
  Block free_block() const;
  /// Of each device what may still be lent, in the order of total().devices.
  std::span<const DeviceShare> free_devices() const { return devices_.free(); }
  /// Whether more is held of something than there is now.
  bool overdrawn() const;
  /// The truth changed. Reservations stay as they are, also on cores that are no longer there.
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
  void lend(const Block& block, int sign);
  void lend(int core, std::int64_t milli);

  Block total_;
  Resources held_;
  std::vector<std::int64_t> lent_;     // thousandths of each of total_.cores
  std::vector<CoreShare> free_cores_;  // what that leaves of them, at least 0
  DeviceLoans devices_;
  std::shared_ptr<DeviceLinks> links_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> vacant_;
};

}  // namespace berth::machine
