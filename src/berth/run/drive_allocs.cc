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
constexpr Duration kFirstBackoff = std::chrono::milliseconds(500);
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
    while (!from.closed && !scheduler_->wanting(1).empty() &&
           (!from.seek_at || env_.now() >= *from.seek_at)) {
      from.seek_at.reset();
      const bool main = &from == &leasings_.front();
      BERTH_ASSIGN(const bool got, main ? seek_alloc(from) : seek_help(from));
      if (from.closed) from.seek_at.reset();
      if (!got) break;
      BERTH_TRY(advance());  // what is proposed as there is room for it
    }
  }
  if (auto error = no_source_left()) return leave_for_resume(*std::move(error));
  if (!scheduler_->wanting(1).empty()) {
    // What is held may be where it failed.
    const bool avoids = live_.empty() && scheduler_->avoided(scheduler_->wanting(1).front()) != 0;
    progress_.waiting_for = holds_alloc() && !avoids ? "" : waiting_for();
    return {};
  }
  progress_.waiting_for = holds_alloc() ? "" : join(silences(), "; ");
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
  const bool first = !holds_alloc();
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
                                   .selection = wants.selection,
                                   .priority = record_.priority,
                                   .waits = first,
                                   .labels = labels_,
                                   .avoid = avoided(wanting[i])});
    if (alloc) {
      if (passes) ++passed_;
      berth(*std::move(alloc), 0, wants.selection);
      return true;
    }
    // This machine may grow again after it shrank; what else it says ends this try of the run.
    Error error = std::move(alloc).error();
    const bool waits = error.kind == ErrorKind::busy || error.kind == ErrorKind::impossible;
    if (!from.source.staff && !waits) return std::unexpected(std::move(error));
    if (passes) continue;
    from.seek_at = cluster.retry_at();
    const bool alone = leasings_.size() == 1 && error.kind != ErrorKind::busy;
    if (alone && scheduler_->avoided(wanting[i]) != 0) {
      scheduler_->settle_for(wanting[i], effects_);
      from.seek_at.reset();
      continue;
    }
    if (site_.devices) error.message += machine::unusable_text(*site_.devices);
    on_refusal(from, wanting[i], std::move(error));
    if (from.closed) break;
  }
  return false;
}

/// What it means for a source that it gave nothing.
void Drive::on_refusal(Leasing& from, TaskNumber task, Error error) {
  // That there is no other machine than the one to avoid says nothing of the source.
  if (error.kind == ErrorKind::impossible && scheduler_->avoided(task) != 0)
    error.kind = ErrorKind::busy;
  const bool failed = error.kind != ErrorKind::busy && error.kind != ErrorKind::impossible;
  const bool lasting = !retryable(error.kind);
  const bool as_before = from.failing_since && lasting == !retryable(from.refusal->kind);
  from.refusal = std::move(error);
  from.refused_task = task;
  if (!failed) {
    from.failing_since.reset();
    return;
  }
  const Mono now = env_.now();
  if (!as_before) from.failing_since = now;
  const Duration most = lasting ? kRefusedMost : (from.has_served ? kLostMost : kUnreachedMost);
  from.closed = now - *from.failing_since >= most && silences().empty();
  if (!from.closed && !holds_alloc() && leasings_.size() == 1) return;  // see waiting_for()
  const std::string text = fmt::format(
      "{} {}: {}", from.closed ? "goes on without" : "no help from",
      from.source.name.empty() ? "this machine" : from.source.name, from.refusal->message);
  if (from.told != text && !(from.closed && no_source_left())) observer_.on_note(text);
  from.told = text;
}

/// Nothing runs, and no source will ever give what the first task wants: why.
std::optional<Error> Drive::no_source_left() const {
  const auto wanting = scheduler_->wanting(1);
  if (!berthed_.empty() || wanting.empty()) return std::nullopt;
  ErrorKind kind = ErrorKind::impossible;
  for (const auto& from : leasings_) {
    if (from.refusal && from.refusal->kind == ErrorKind::unconfirmed) kind = from.refusal->kind;
    const bool impossible = from.source.staff && from.refusal &&
                            from.refusal->kind == ErrorKind::impossible &&
                            from.refused_task == wanting.front();
    if (!from.closed && !impossible) return std::nullopt;
  }
  return Error{kind, waiting_for()};
}

/// Others may run tasks of an earlier runner, and take no more.
bool Drive::holds_alloc() const {
  return std::ranges::any_of(berthed_,
                             [](const auto& berthed) { return berthed->silence.empty(); });
}

/// Who runs tasks of an earlier runner, as far as is known, and does not answer.
std::vector<std::string> Drive::silences() const {
  std::vector<std::string> all;
  for (const auto& berthed : berthed_)
    if (berthed->silent != nullptr) all.push_back(berthed->silence);
  return all;
}

/// Who does not answer, what each source answered last, and which machine is avoided.
std::string Drive::waiting_for() const {
  std::vector<std::string> reasons = silences();
  for (const auto& from : leasings_) {
    if (!from.refusal) continue;
    const std::string& name = from.source.name;
    const bool alone = leasings_.size() == 1 || name.empty();
    reasons.push_back((alone ? "" : name + ": ") + from.refusal->message);
  }
  const auto wanting = scheduler_->wanting(1);
  const auto machines = wanting.empty() ? std::vector<std::string>{} : avoided(wanting.front());
  if (!machines.empty())
    reasons.push_back(fmt::format("not on {}, where it failed", join(machines, ", ")));
  return join(reasons, "; ");
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
                                   .selection = wants.selection,
                                   .priority = record_.priority,
                                   .labels = labels_,
                                   .avoid = avoided(wanting[i])});
    if (alloc) {
      berth(*std::move(alloc), static_cast<std::size_t>(&from - leasings_.data()), wants.selection);
      return true;
    }
    if (i == 0) on_refusal(from, wanting[i], std::move(alloc).error());
    if (from.closed) return false;
  }
  from.seek_at = cluster.retry_at();
  return false;
}

void Drive::berth(cluster::Alloc alloc, std::size_t source, machine::DeviceSelection selection) {
  auto added = std::make_unique<Berthed>();
  added->id = {++workers_made_};
  added->source = source;
  added->selection = std::move(selection);
  leasings_[source].has_served = true;
  leasings_[source].refusal.reset();
  leasings_[source].failing_since.reset();
  added->machine = std::make_unique<machine::Machine>(alloc.block);
  added->alloc = std::move(alloc);
  os::failpoint("alloc");
  staff(*added);
  if (added->alloc.expires) added->keepalive_at = env_.now();
  const schedule::Worker worker{
      .id = added->id,
      .resources = schedule_resources(*added, added->alloc.block.resources),
      .kind = source == 0 ? schedule::Kind::primary : schedule::Kind::stealer,
      .machine = leasings_[source].source.staff ? number_of(added->alloc.machine) : 0};
  berthed_.push_back(std::move(added));
  if (!look_at_) look_at_ = env_.now() + kLookForOthers;
  scheduler_->joined(worker, env_.now(), effects_);
  carry_out();
}

/// Machines on which the task is not to be started now: it failed there.
std::vector<std::string> Drive::avoided(TaskNumber task) const {
  std::vector<std::string> names;
  const std::int64_t avoids = scheduler_->avoided(task);
  for (const auto& [name, number] : machines_)
    if (number == avoids) names.push_back(name);
  return names;
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

/// Before the messages of this turn are read: what ends by them lets nothing start on a lost
/// worker.
void Drive::close_the_lost() {
  for (auto& berthed : berthed_) {
    if (!berthed->lost) berthed->lost = berthed->worker->lost();
    if (berthed->lost) scheduler_->close(berthed->id);
  }
}

void Drive::bury_the_lost() {
  std::vector<std::unique_ptr<Berthed>> lost;
  for (auto& berthed : berthed_)
    if (berthed->lost) lost.push_back(std::move(berthed));
  std::erase(berthed_, nullptr);
  for (auto& berthed : lost) {
    const bool unconfirmed = berthed->lost->kind == ErrorKind::unconfirmed;
    if (unconfirmed) berthed->worker->finish();  // it lives, and holds its part of that machine
    bury(*berthed);
    free(*berthed);
    Leasing& from = leasings_[berthed->source];
    if (!from.source.staff) continue;
    if (unconfirmed) {
      from.refusal = berthed->lost;
      from.closed = true;
      if (!no_source_left())
        observer_.on_note(
            fmt::format("goes on without {}: {}", from.source.name, from.refusal->message));
      continue;
    }
    const auto jitter = static_cast<std::int64_t>(env_.random() % 512);
    from.seek_at =
        env_.now() + kFirstBackoff * (1 << std::min(from.losses++, 7)) * (768 + jitter) / 1024;
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
