#include "berth/cluster/local.h"

#include <algorithm>

namespace berth::cluster {
namespace {

constexpr Duration kLookForMore = std::chrono::milliseconds(100);

}  // namespace

LocalCluster::LocalCluster(os::Env& env, machine::Ledger ledger, ReadHost host)
    : env_(env), ledger_(std::move(ledger)), host_(std::move(host)) {}

LocalCluster::~LocalCluster() {
  stop_waiting();
  for (const auto& [id, _] : held_) (void)ledger_.release(id);
}

Result<std::vector<Offer>> LocalCluster::offers() {
  BERTH_ASSIGN(const auto host, host_());
  BERTH_ASSIGN(const auto entries, ledger_.entries());
  machine::Machine machine(host.total, host.links);
  const auto held = machine::occupy_all(machine, host, entries);
  return std::vector<Offer>{{.machine = env_.host_name(),
                             .free = machine.free_block(),
                             .total = host.total,
                             .links = host.links}};
}

Result<Alloc> LocalCluster::accept(const Offer& offer, const std::optional<machine::Request>& part,
                                   const Labels& labels) {
  if (part) return acquire({part->resources, name_of(labels), 0, part->selection}, labels, false);
  // Beside a gpu these would mean a part of one; who takes everything takes whole devices.
  Resources all = offer.free.resources;
  all.set(Known::gpu_mem, 0);
  all.set(Known::gpu_slots, 0);
  return acquire({all, name_of(labels), 0, {}}, labels, false);
}

Result<Alloc> LocalCluster::allocate(const Wish& wish) {
  return acquire({wish.requirements.min, name_of(wish.labels), wish.priority, wish.selection},
                 wish.labels, wish.waits);
}

Result<Alloc> LocalCluster::acquire(const machine::AllocRequest& ask, const Labels& labels,
                                    bool waits) {
  BERTH_ASSIGN(const auto host, host_());
  if (waits && !ticket_) ticket_ = ledger_.new_ticket();
  auto granted = ledger_.acquire(host, ask, waits ? ticket_ : std::nullopt);
  if (!granted) {
    shrunk_ = granted.error().kind == ErrorKind::impossible;
    // The longer the queue has not moved, the less a moment more matters, and the less often it is
    // worth a look.
    if (!stands_since_ || ledger_.position() != position_) stands_since_ = env_.now();
    position_ = ledger_.position();
    return std::unexpected(granted.error());
  }
  if (waits) ticket_.reset();
  stands_since_.reset();
  Alloc alloc{.id = granted->id,
              .machine = env_.host_name(),
              .block = std::move(granted->block),
              .links = host.links,
              .labels = labels};
  held_.emplace(alloc.id, alloc);
  return alloc;
}

Mono LocalCluster::retry_at() {
  const Duration stood = stands_since_ ? env_.now() - *stands_since_ : Duration{};
  const Duration backoff = ticket_ ? std::min<Duration>(stood / 32, kLookForMore) : kLookForMore;
  const Duration wait =
      shrunk_ ? kLookForMore : std::max(machine::Ledger::retry_delay(position_), backoff);
  const auto jitter = static_cast<std::int64_t>(env_.random() % 512);  // 75 % to 125 %
  return env_.now() + wait * (768 + jitter) / 1024;
}

void LocalCluster::stop_waiting() {
  if (ticket_) (void)ledger_.release(*std::exchange(ticket_, std::nullopt));
}

Result<std::optional<Mono>> LocalCluster::keepalive(AllocId id) {
  BERTH_TRY(inspect(id));
  return std::optional<Mono>{};
}

Result<Alloc> LocalCluster::inspect(AllocId id) {
  const auto held = held_.find(id);
  if (held == held_.end())
    return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
  return held->second;
}

Status LocalCluster::free(AllocId id) {
  if (held_.erase(id) == 0)
    return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
  // One that was handed over to an agent is that one's to release.
  const auto released = ledger_.release(id);
  if (!released && released.error().kind != ErrorKind::stale) return released;
  return {};
}

Result<bool> LocalCluster::others_wait(std::int64_t priority) {
  return ledger_.others_wait(priority);
}

}  // namespace berth::cluster
