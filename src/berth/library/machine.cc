// berth/machine.h over the ledger of the machine.
#include "berth/machine.h"

#include "berth/base/time.h"
#include "berth/library/convert.h"
#include "berth/machine/devices/device_health.h"
#include "berth/machine/ledger/ledger.h"

namespace berth {

struct Machine::State {
  std::unique_ptr<os::Env> env;
  machine::CapacityOptions options;
  std::string ledger_directory;
  machine::Ledger ledger;
  machine::Devices devices;

  struct Reading {
    machine::Capacity capacity;
    machine::Host host;
  };
  Result<Reading> read() {
    Reading now;
    BERTH_ASSIGN(now.capacity, machine::discover(*env, options));
    now.host = machine::host_of(now.capacity, &devices);
    return now;
  }
};

struct Reservation::State {
  std::shared_ptr<Machine::State> machine;
  machine::Alloc alloc;
  MachinePart part;
  bool held = true;

  Status give_back() {
    if (!held) return fail(ErrorKind::stale, "the reservation was already released");
    BERTH_TRY(machine->ledger.release(alloc.id));
    held = false;
    return {};
  }
};

namespace {

/// A place in the queue of those who wait, which is given up however the wait ends.
struct Place {
  Place(machine::Ledger& queue, bool waits) : ledger(queue) {
    if (waits) ticket = ledger.new_ticket();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    if (ticket) (void)ledger.release(*ticket);  // one that never came into the queue is stale
  }
  machine::Ledger& ledger;
  std::optional<machine::AllocId> ticket;
};

}  // namespace

Reservation::Reservation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reservation::Reservation(Reservation&&) noexcept = default;

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  if (state_ && state_->held) (void)state_->give_back();
  state_ = std::move(other.state_);
  return *this;
}

Reservation::~Reservation() {
  if (state_ && state_->held) (void)state_->give_back();
}

const MachinePart& Reservation::part() const {
  static const MachinePart kNothing;
  return state_ ? state_->part : kNothing;
}

std::vector<std::pair<std::string, std::string>> Reservation::environment() const {
  if (!state_) return {};
  return machine::visibility(state_->alloc.block.devices);
}

Status Reservation::release() {
  if (!state_) return fail(ErrorKind::stale, "the reservation was moved from");
  return state_->give_back();
}

Machine::Machine(std::shared_ptr<State> state) : state_(std::move(state)) {}
Machine::Machine(Machine&&) noexcept = default;
Machine& Machine::operator=(Machine&&) noexcept = default;
Machine::~Machine() = default;

Result<Machine> Machine::open(const MachineOptions& options) {
  auto env = os::posix_env();
  const std::string directory =
      options.ledger.empty() ? machine::Ledger::default_directory(*env) : options.ledger;
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(*env, directory));
  BERTH_ASSIGN(auto devices, machine::read_devices(*env, {}, directory));
  return Machine(std::make_shared<State>(State{
      std::move(env),
      {.disk_directory = options.disk_directory, .root = "", .machine_file = options.machine_file},
      directory,
      std::move(ledger),
      std::move(devices)}));
}

Result<Capacity> Machine::capacity() {
  BERTH_ASSIGN(state_->devices.health,
               machine::read_health_update(*state_->env, {}, state_->devices.topology,
                                           state_->ledger_directory));
  BERTH_ASSIGN(auto now, state_->read());
  BERTH_ASSIGN(const auto entries, state_->ledger.entries());
  machine::Machine machine(now.host.total, now.host.links);
  const auto held = machine::occupy_all(machine, now.host, entries);
  return Capacity{.total = library::part_of(now.host.total),
                  .free = library::part_of(machine.free_block()),
                  .overdrawn = machine.overdrawn(),
                  .cpu_from = std::move(now.capacity.cpu_from),
                  .mem_from = std::move(now.capacity.mem_from),
                  .out_of_service = state_->devices.health.out_of_service,
                  .notes = std::move(now.capacity.notes)};
}

Result<std::vector<Holder>> Machine::holders() {
  BERTH_ASSIGN(const auto entries, state_->ledger.entries());
  std::vector<Holder> holders;
  for (const machine::LedgerEntry& entry : entries)
    holders.push_back({entry.label, entry.holder.pid, entry.user, entry.waiting,
                       std::chrono::milliseconds(to_ms(entry.since)),
                       library::part_of(entry.block)});
  return holders;
}

Result<Reservation> Machine::reserve(const Request& request, std::chrono::milliseconds wait) {
  State& state = *state_;
  BERTH_ASSIGN(auto ask, library::ask_of(request));
  const Mono until = state.env->now() + wait;
  Place place(state.ledger, wait > wait.zero());
  for (;;) {
    BERTH_ASSIGN(const auto now, state.read());
    auto alloc = state.ledger.acquire(now.host, ask, place.ticket);
    if (alloc) {
      place.ticket.reset();
      MachinePart part = library::part_of(alloc->block);
      return Reservation(std::make_unique<Reservation::State>(
          Reservation::State{state_, *std::move(alloc), std::move(part)}));
    }
    const Mono again = state.env->now() + machine::Ledger::retry_delay(state.ledger.position());
    if (alloc.error().kind != ErrorKind::busy || again >= until)
      return std::unexpected(std::move(alloc).error());
    BERTH_TRY(state.env->wait({}, again));
  }
}

Result<MachinePart> Machine::dry_run(const Request& request) {
  BERTH_ASSIGN(auto ask, library::ask_of(request));
  BERTH_ASSIGN(const auto now, state_->read());
  BERTH_ASSIGN(const auto entries, state_->ledger.entries());
  machine::Machine machine(now.host.total, now.host.links);
  const auto held = machine::occupy_all(machine, now.host, entries);
  BERTH_ASSIGN(const auto block, machine.dry_run({ask.resources, ask.label, ask.selection}));
  return library::part_of(block);
}

}  // namespace berth
