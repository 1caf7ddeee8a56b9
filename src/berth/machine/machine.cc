#include "berth/machine/machine.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <numeric>
#include <span>

#include "berth/base/json_writer.h"
#include "berth/base/near_names.h"
#include "berth/base/text.h"
#include "berth/resource/resources.h"

namespace berth::machine {
namespace {

constexpr std::size_t kHoldersNamed = 3;
constexpr std::string_view kWhyNoGpus = " ('berth doctor' says why)";

std::uint32_t next_generation() {
  static std::atomic<std::uint32_t> last = 0;
  const std::uint32_t next = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return next != 0 ? next : next_generation();
}

std::int64_t sum(const std::vector<CoreShare>& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::int64_t{0},
                         [](std::int64_t total, const auto& share) { return total + share.milli; });
}

/// Place of `core` in shares ascending by core; their size where it is not among them.
std::size_t place_of(const std::vector<CoreShare>& shares, int core) {
  const auto found = std::ranges::lower_bound(shares, core, {}, &CoreShare::core);
  const bool present = found != shares.end() && found->core == core;
  return static_cast<std::size_t>((present ? found : shares.end()) - shares.begin());
}

}  // namespace

std::string to_json(const Request& request) {
  JsonWriter json;
  json.object().add("holder", request.holder).key("resources").raw(to_json(request.resources));
  return json.end().take();
}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  Reservation gone(std::move(other));
  std::swap(machine_, gone.machine_);
  std::swap(id_, gone.id_);
  return *this;
}

Reservation::~Reservation() {
  if (machine_ != nullptr) static_cast<void>(machine_->release(id_));
}

const Block& Reservation::block() const {
  const Block* block = machine_ != nullptr ? machine_->find(id_) : nullptr;
  BERTH_ASSERT(block != nullptr);
  return *block;
}

Status Reservation::release() {
  if (machine_ == nullptr) return fail(ErrorKind::stale, "this reservation was already released");
  return std::exchange(machine_, nullptr)->release(std::exchange(id_, {}));
}

Machine::Machine(Block total, std::shared_ptr<DeviceLinks> links) : links_(std::move(links)) {
  set_total(std::move(total));
}

Result<Reservation> Machine::reserve(const Request& request) {
  BERTH_ASSIGN(Block block, plan(request));
  return take(std::move(block), request.holder);
}

Result<Block> Machine::dry_run(const Request& request) const {
  return plan(request);
}

Result<Reservation> Machine::occupy(const Block& block, std::string holder) {
  return take(part_of_ours(block), holder);
}

Status Machine::release(ReservationId id) {
  if (find(id) == nullptr)
    return fail(ErrorKind::stale,
                "this reservation was already released, or is of another machine");
  Slot& slot = slots_[id.slot];
  const Status subtracted = held_.subtract(slot.block.resources);
  BERTH_ASSERT(subtracted.has_value());
  count(slot.block, -1);
  slot.generation = 0;
  vacant_.push_back(id.slot);
  return {};
}

const Block* Machine::find(ReservationId id) const {
  const bool ours =
      id.generation != 0 && id.slot < slots_.size() && slots_[id.slot].generation == id.generation;
  return ours ? &slots_[id.slot].block : nullptr;
}

Resources Machine::free() const {
  Resources free;
  total_.resources.each(
      [&](std::string_view resource, std::int64_t) { free.set(resource, free_of(resource)); });
  return free;
}

Block Machine::free_block() const {
  const auto devices = devices_.free();
  std::vector<CoreShare> cores;
  std::ranges::copy_if(free_cores_, std::back_inserter(cores),
                       [](const CoreShare& share) { return share.milli > 0; });
  return {free(), std::move(cores), {devices.begin(), devices.end()}};
}

bool Machine::overdrawn() const {
  if (!total_.resources.covers(held_) || devices_.overdrawn()) return true;
  for (std::size_t i = 0; i < allocated_.size(); ++i)
    if (allocated_[i] > total_.cores[i].milli) return true;
  return std::ranges::any_of(slots_, [&](const Slot& slot) {
    return slot.generation != 0 && std::ranges::any_of(slot.block.cores, [&](const auto& share) {
             return place_of(total_.cores, share.core) == total_.cores.size();
           });
  });
}

void Machine::set_total(Block total) {
  total_ = std::move(total);
  if (!total_.cores.empty())
    total_.resources.set(Known::cpu, std::min(total_.resources.get(Known::cpu), sum(total_.cores)));
  set_device_amounts(total_.devices, total_.resources);
  allocated_.assign(total_.cores.size(), 0);
  free_cores_ = total_.cores;
  devices_.begin(total_.devices);
  for (const auto& slot : slots_)
    if (slot.generation != 0) count(slot.block, 1);
}

Result<Block> Machine::plan(const Request& request) const {
  const DeviceNeed need = device_need(request.resources, request.selection);
  Resources rest = request.resources;
  for (const Known known : {Known::gpu, Known::gpu_mem, Known::gpu_slots}) rest.set(known, 0);
  // Only the links know the groups of a policy; everything else is decided without them.
  DeviceLinks* const groups = request.selection.is_by_group() ? links_.get() : nullptr;
  if (need.count > 0 && choose_devices(devices_.total(), need, groups).empty())
    return fail(ErrorKind::impossible, "{}{}", shortage_of_total(devices_.total(), need, name_),
                devices_.total().empty() && name_ == kThisMachine ? kWhyNoGpus : "");
  if (const auto lacking = total_.resources.first_short(rest); !lacking.empty())
    return refuse_for_good(lacking, rest.get(lacking));

  Block block;
  block.devices = choose_devices(devices_.free(), need, links_.get());
  if (need.count > 0 && block.devices.empty()) {
    const auto [known, why] = shortage(devices_.free(), need);
    return fail(ErrorKind::busy, "{}: {} of {}{}", name(known), why,
                format_amount(name(known), total_.resources.get(known)), holders_of(name(known)));
  }
  std::string_view lacking;
  rest.each([&](std::string_view resource, std::int64_t amount) {
    if (lacking.empty() && amount > free_of(resource)) lacking = resource;
  });
  if (!lacking.empty()) return refuse_for_now(lacking, rest.get(lacking));
  const int near = block.devices.empty() ? -1 : block.devices.front().node;
  block.cores = choose_cores(free_cores_, rest.get(Known::cpu), near);
  block.resources = std::move(rest);
  if (need.count > 0) set_device_amounts(block.devices, block.resources);
  return block;
}

std::int64_t Machine::free_of(std::string_view resource) const {
  if (resource == name(Known::gpu) || resource == name(Known::gpu_mem) ||
      resource == name(Known::gpu_slots)) {
    Resources devices;
    set_device_amounts(devices_.free(), devices);
    return devices.get(resource);
  }
  const std::int64_t left =
      std::max<std::int64_t>(0, total_.resources.get(resource) - held_.get(resource));
  const bool on_cores = resource == name(Known::cpu) && !free_cores_.empty();
  return on_cores ? std::min(left, sum(free_cores_)) : left;
}

std::unexpected<Error> Machine::refuse_for_good(std::string_view resource,
                                                std::int64_t wanted) const {
  const auto total = total_.resources.get(resource);
  const auto meant = total == 0 ? meant_resource(resource) : std::string_view();
  return fail(ErrorKind::impossible, "{} requested; {} has {}{}", requested_text(resource, wanted),
              name_, available_text(resource, total),
              meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

std::unexpected<Error> Machine::refuse_for_now(std::string_view resource,
                                               std::int64_t wanted) const {
  return fail(ErrorKind::busy, "{}: requested {}, free {} of {}{}", resource,
              requested_amount(resource, wanted), format_amount(resource, free_of(resource)),
              format_amount(resource, total_.resources.get(resource)), holders_of(resource));
}

/// "; held by digits-3 4, sweep-1/7 2.5 and 4 more", the greatest first.
std::string Machine::holders_of(std::string_view resource) const {
  using Share = std::pair<std::string_view, std::int64_t>;
  std::vector<Share> shares;
  for (const auto& slot : slots_) {
    if (slot.generation == 0) continue;
    // A device of which a part is held is not available as a whole.
    const std::int64_t amount = resource == name(Known::gpu)
                                    ? static_cast<std::int64_t>(slot.block.devices.size())
                                    : slot.block.resources.get(resource);
    if (amount == 0) continue;
    const auto known = std::ranges::find(shares, std::string_view(slot.holder), &Share::first);
    if (known == shares.end())
      shares.emplace_back(slot.holder, amount);
    else
      known->second += amount;
  }
  std::ranges::sort(shares, {}, [](const Share& s) { return std::pair(-s.second, s.first); });
  std::vector<std::string> named;
  for (const auto& [holder, amount] :
       std::span(shares).first(std::min(shares.size(), kHoldersNamed)))
    named.push_back(fmt::format("{} {}", clip(holder), format_amount(resource, amount)));
  if (named.empty()) return {};
  const std::size_t more = shares.size() - named.size();
  return fmt::format("; used by {}{}", join(named, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

Result<Reservation> Machine::take(Block block, std::string_view holder) {
  BERTH_TRY(held_.add(block.resources));
  count(block, 1);
  if (vacant_.empty()) {
    vacant_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const ReservationId id{vacant_.back(), next_generation()};
  vacant_.pop_back();
  Slot& slot = slots_[id.slot];
  slot.generation = id.generation;
  slot.block = std::move(block);
  slot.holder = holder;
  return Reservation(*this, id);
}

Block Machine::part_of_ours(const Block& block) const {
  Block part;
  block.resources.each([&](std::string_view resource, std::int64_t amount) {
    if (total_.resources.get(resource) > 0) part.resources.set(resource, amount);
  });
  std::ranges::copy_if(block.cores, std::back_inserter(part.cores), [&](const auto& share) {
    return place_of(total_.cores, share.core) < total_.cores.size();
  });
  std::ranges::copy_if(block.devices, std::back_inserter(part.devices),
                       [&](const auto& share) { return devices_.has(share); });
  set_device_amounts(part.devices, part.resources);
  if (!block.cores.empty() && !total_.cores.empty()) {
    const std::int64_t here = std::min(part.resources.get(Known::cpu), sum(part.cores));
    part.resources.set(Known::cpu, here);
  }
  return part;
}

void Machine::count(const Block& block, int sign) {
  for (const auto& share : block.cores) count(share.core, sign * share.milli);
  for (const auto& share : block.devices) devices_.count(share, sign);
}

/// Adds to what is held of a core; a core that the machine lacks is not counted.
void Machine::count(int core, std::int64_t milli) {
  const std::size_t at = place_of(total_.cores, core);
  if (at == total_.cores.size()) return;
  allocated_[at] += milli;
  const std::int64_t left = total_.cores[at].milli - allocated_[at];
  free_cores_[at].milli = static_cast<int>(std::max<std::int64_t>(0, left));
}

}  // namespace berth::machine
