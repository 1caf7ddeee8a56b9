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

/// With nothing in hand the run queues for its first alloc; with one, it takes more only when they
/// lie free and nobody waits for them.
Status Drive::seek_allocs() {
  if (seek_at_ && env_.now() < *seek_at_) return {};
  seek_at_.reset();
  while (!scheduler_->wanting(1).empty()) {
    BERTH_ASSIGN(const bool got, seek_alloc());
    if (!got) return {};
  }
  progress_.waiting_for.clear();
  cluster_->stop_waiting();
  return {};
}

/// For the first task that finds room: mostly the first in the queue; others may pass it so often,
/// and then what comes free is left for it.
Result<bool> Drive::seek_alloc() {
  const bool first = berthed_.empty();
  const auto wanting = scheduler_->wanting();
  if (passed_task_ != wanting.front()) passed_ = 0;
  passed_task_ = wanting.front();
  for (const auto number : wanting) {
    const bool passes = number != wanting.front();
    if (passes && (first || passed_ == kPassings)) break;
    const Wants wants = workload_->wants(task(number));
    auto alloc = cluster_->allocate({.requirements = {wants.resources, 1},
                                     .slot_sizes = wants.slot_sizes,
                                     .priority = record_.priority,
                                     .waits = first,
                                     .labels = labels_});
    if (alloc) {
      if (passes) ++passed_;
      progress_.waiting_for.clear();
      berth(*std::move(alloc));
      return true;
    }
    // A machine that shrank under us may grow again; anything else is not mended by waiting.
    const auto kind = alloc.error().kind;
    if (kind != ErrorKind::busy && kind != ErrorKind::impossible)
      return std::unexpected(alloc.error());
    if (passes) continue;
    seek_at_ = cluster_->retry_at();
    if (!first) continue;
    progress_.waiting_for = alloc.error().message;
    if (site_.devices) progress_.waiting_for += machine::out_of_service_text(*site_.devices);
  }
  return false;
}

void Drive::berth(cluster::Alloc alloc) {
  auto added = std::make_unique<Berthed>();
  added->id = {++workers_made_};
  added->alloc = alloc.id;
  const Resources resources = alloc.block.resources;
  added->machine = std::make_unique<machine::Machine>(std::move(alloc.block));
  os::failpoint("alloc");
  staff(*added, added->machine->total());
  const auto id = added->id;
  berthed_.push_back(std::move(added));
  if (!look_at_) look_at_ = env_.now() + kLookForOthers;
  scheduler_->joined({.id = id, .resources = resources}, env_.now(), effects_);
  carry_out();
}

/// Idle workers whose alloc nobody here needs.
Status Drive::give_back() {
  const bool wanted = scheduler_->next_tick().has_value();  // a retry is due soon
  const auto unneeded = [&](const std::unique_ptr<Berthed>& berthed) {
    const bool idle = scheduler_->idle(berthed->id) && berthed->worker->idle();
    return idle && (!wanted || scheduler_->closed(berthed->id));
  };
  // An agent has told its last only when that is acknowledged.
  if (std::ranges::any_of(berthed_, [&](const auto& berthed) {
        return berthed->link != nullptr && unneeded(berthed);
      }))
    BERTH_TRY(commit());
  std::erase_if(berthed_, [&](const auto& berthed) {
    if (!unneeded(berthed)) return false;
    scheduler_->left(berthed->id);
    if (berthed->link != nullptr) berthed->link->finish();
    (void)cluster_->free(berthed->alloc);
    return true;
  });
  if (berthed_.empty()) look_at_.reset();
  return {};
}

void Drive::bury_the_lost() {
  for (auto& berthed : berthed_)
    if (berthed->worker->lost()) bury(*berthed);
  std::erase_if(berthed_, [&](const auto& berthed) {
    if (!berthed->worker->lost()) return false;
    (void)cluster_->free(berthed->alloc);
    return true;
  });
}

/// While others wait, the alloc of each task that ends goes to them: a long sweep shares the
/// machine with what comes after it, trial by trial.
void Drive::look_for_others() {
  if (!look_at_ || env_.now() < *look_at_) return;
  look_at_ = env_.now() + kLookForOthers;
  others_wait_ = cluster_->others_wait(record_.priority).value_or(false);
}

}  // namespace berth::run
