// Leasing: how a running run gets allocs from its cluster, and gives them back.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"
#include "berth/run/drive.h"

namespace berth::run {
namespace {

constexpr Duration kCapacityAge = std::chrono::seconds(1);
constexpr Duration kLookForOthers = std::chrono::milliseconds(200);
constexpr int kPassings = 16;
/// A source whose worker was lost is left alone for so long, for twice as long the next time.
constexpr Duration kFirstDistrust = std::chrono::milliseconds(500);
constexpr Duration kSoonest = std::chrono::milliseconds(10);

}  // namespace

/// The machine as it was at most a second ago. A limit that fell below the machine file's is an
/// error at the start; later the last good reading stands.
Result<machine::Host> Drive::read_host() {
  if (host_ && host_read_ && env_.now() - *host_read_ < kCapacityAge) return *host_;
  const auto capacity = machine::discover(env_, site_.capacity);
  if (capacity)
    host_ = machine::host_of(*capacity, site_.devices ? &*site_.devices : nullptr);
  else if (!host_)
    return std::unexpected(capacity.error());
  host_read_ = env_.now();
  return *host_;
}

/// From each source in turn, while something finds no room in those before it.
Status Drive::seek_allocs() {
  for (auto& from : leasings_) {
    while (!scheduler_->wanting(1).empty() && (!from.seek_at || env_.now() >= *from.seek_at)) {
      from.seek_at.reset();
      const bool main = &from == &leasings_.front();
      BERTH_ASSIGN(const bool got, main ? seek_alloc(from) : seek_help(from));
      if (!got) break;
      BERTH_TRY(advance());  // what is proposed as there is room for it
    }
  }
  if (!scheduler_->wanting(1).empty()) return {};
  progress_.waiting_for.clear();
  for (auto& from : leasings_) {
    from.seek_at.reset();
    from.source.cluster->stop_waiting();
  }
  return {};
}

/// With nothing in hand the run queues for its first alloc; with one, it takes more only when they
/// lie free and nobody waits for them. For the first task that finds room: mostly the first in the
/// queue; others may pass it so often, and then what comes free is left for it.
Result<bool> Drive::seek_alloc(Leasing& from) {
  cluster::Cluster& cluster = *from.source.cluster;
  const bool first = berthed_.empty();
  const auto wanting = scheduler_->wanting();
  if (passed_task_ != wanting.front()) passed_ = 0;
  passed_task_ = wanting.front();
  const auto needs = scheduler_->needs();
  for (std::size_t i = 0; i < wanting.size(); ++i) {
    const bool passes = i > 0;
    if (passes && (first || passed_ == kPassings)) break;
    const Wants wants = workload_->wants(task(wanting[i]));
    const std::int64_t width = from.source.staff ? needs[i].width : 1;
    auto alloc = cluster.allocate({.requirements = {wants.resources, width},
                                   .slot_sizes = wants.slot_sizes,
                                   .priority = record_.priority,
                                   .waits = first,
                                   .labels = labels_});
    if (alloc) {
      if (passes) ++passed_;
      progress_.waiting_for.clear();
      berth(*std::move(alloc), 0);
      return true;
    }
    // A machine that shrank under us may grow again; anything else is not mended by waiting, and
    // what other machines have nobody has looked at before.
    const auto kind = alloc.error().kind;
    const bool passing =
        kind == ErrorKind::busy || (kind == ErrorKind::impossible && !(first && from.source.staff));
    if (!passing) return std::unexpected(alloc.error());
    if (passes) continue;
    from.seek_at = cluster.retry_at();
    if (!first) continue;
    progress_.waiting_for = alloc.error().message;
    if (site_.devices) progress_.waiting_for += machine::out_of_service_text(*site_.devices);
  }
  return false;
}

/// A stealer, for as much of what finds no room as can be had. Help that fails is no fault of the
/// run.
Result<bool> Drive::seek_help(Leasing& from) {
  const auto wanting = scheduler_->wanting();
  const auto needs = scheduler_->needs();
  cluster::Cluster& cluster = *from.source.cluster;
  for (std::size_t i = 0; i < wanting.size(); ++i) {
    const Wants wants = workload_->wants(task(wanting[i]));
    auto alloc = cluster.allocate({.requirements = {wants.resources, needs[i].width},
                                   .slot_sizes = wants.slot_sizes,
                                   .priority = record_.priority,
                                   .labels = labels_});
    if (alloc) {
      berth(*std::move(alloc), static_cast<std::size_t>(&from - leasings_.data()));
      return true;
    }
    const auto kind = alloc.error().kind;
    const bool expected = kind == ErrorKind::busy || kind == ErrorKind::impossible;
    if (expected || alloc.error().message == from.refusal) continue;
    from.refusal = alloc.error().message;
    observer_.on_note(fmt::format("no help from {}: {}", from.source.name, from.refusal));
  }
  from.seek_at = cluster.retry_at();
  return false;
}

void Drive::berth(cluster::Alloc alloc, std::size_t source) {
  auto added = std::make_unique<Berthed>();
  added->id = {++workers_made_};
  added->source = source;
  added->machine = std::make_unique<machine::Machine>(alloc.block);
  added->alloc = std::move(alloc);
  os::failpoint("alloc");
  staff(*added);
  if (added->alloc.expires) added->keepalive_at = env_.now();
  const schedule::Worker worker{
      .id = added->id,
      .resources = added->alloc.block.resources,
      .kind = source == 0 ? schedule::Kind::primary : schedule::Kind::stealer,
      .machine = leasings_[source].source.staff ? number_of(added->alloc.machine) : 0};
  berthed_.push_back(std::move(added));
  if (!look_at_) look_at_ = env_.now() + kLookForOthers;
  scheduler_->joined(worker, env_.now(), effects_);
  carry_out();
}

std::int64_t Drive::number_of(const std::string& machine) {
  return machines_.try_emplace(machine, std::ssize(machines_) + 1).first->second;
}

/// What is about to end gets nothing new. Each lease is renewed when a third of it has gone; what
/// fails is tried again soon. One that has ended takes its worker along, whatever that still says.
void Drive::keep_leases() {
  for (auto& berthed : berthed_) {
    const Mono now = env_.now();
    if (berthed->alloc.closes && now >= *berthed->alloc.closes) {
      berthed->alloc.closes.reset();
      scheduler_->close(berthed->id);
    }
    if (!berthed->keepalive_at || now < *berthed->keepalive_at) continue;
    cluster::Cluster& cluster = *leasings_[berthed->source].source.cluster;
    const Mono ends = *berthed->alloc.expires;
    const auto until = now < ends ? cluster.keepalive(berthed->alloc.id)
                                  : fail(ErrorKind::stale, "its lease has ended");
    if (until) {
      berthed->alloc.expires = *until;
      berthed->keepalive_at.reset();
      if (*until) berthed->keepalive_at = now + (**until - now) / 3;
    } else if (until.error().kind == ErrorKind::stale) {
      berthed->lost = until.error();
      berthed->keepalive_at.reset();
    } else {
      const auto jitter = static_cast<std::int64_t>(env_.random() % 512);
      berthed->keepalive_at = now + (ends - now) * (256 + jitter) / 4096 + kSoonest;
    }
  }
}

void Drive::tend_clusters() {
  for (auto& leasing : leasings_)
    if (leasing.source.tend && leasing.tend_at && env_.now() >= *leasing.tend_at)
      leasing.tend_at = leasing.source.tend();
}

/// Idle workers whose alloc nobody here needs.
Status Drive::give_back() {
  const bool wanted = scheduler_->next_tick().has_value();  // a retry is due soon
  // settle() may want to keep it.
  const bool ending = manner_.retain > Duration(0) && scheduler_->over() && !settled_;
  const auto unneeded = [&](const std::unique_ptr<Berthed>& berthed) {
    const bool idle = scheduler_->idle(berthed->id) && berthed->worker->idle();
    if (ending && berthed.get() == primary()) return false;
    return idle && (scheduler_->closed(berthed->id) || (berthed->source == 0 && !wanted));
  };
  // An agent has told its last only when that is acknowledged, and so has whoever answers.
  if (std::ranges::any_of(berthed_,
                          [&](const auto& berthed) { return berthed->apart && unneeded(berthed); }))
    BERTH_TRY(commit());
  std::erase_if(berthed_, [&](const auto& berthed) {
    if (!unneeded(berthed)) return false;
    scheduler_->left(berthed->id);
    berthed->worker->finish();
    free(*berthed);
    return true;
  });
  if (berthed_.empty()) look_at_.reset();
  return {};
}

void Drive::free(const Berthed& berthed) {
  (void)leasings_[berthed.source].source.cluster->free(berthed.alloc.id);
}

void Drive::bury_the_lost() {
  std::vector<std::unique_ptr<Berthed>> lost;
  for (auto& berthed : berthed_) {
    if (!berthed->lost) berthed->lost = berthed->worker->lost();
    if (berthed->lost) lost.push_back(std::move(berthed));
  }
  std::erase(berthed_, nullptr);
  for (auto& berthed : lost) {
    bury(*berthed);
    free(*berthed);
    Leasing& from = leasings_[berthed->source];
    if (!from.source.staff) continue;
    const auto jitter = static_cast<std::int64_t>(env_.random() % 512);
    from.seek_at =
        env_.now() + kFirstDistrust * (1 << std::min(from.losses++, 7)) * (768 + jitter) / 1024;
  }
}

/// While others wait, the alloc of each task that ends goes to them: a long sweep shares the
/// machine with what comes after it, trial by trial.
void Drive::look_for_others() {
  if (!look_at_ || env_.now() < *look_at_) return;
  look_at_ = env_.now() + kLookForOthers;
  others_wait_ = leasings_.front().source.cluster->others_wait(record_.priority).value_or(false);
}

}  // namespace berth::run
