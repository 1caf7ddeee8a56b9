#include "berth/run/drive/leases.h"
#include "berth/run/state/run_labels.h"

#include <algorithm>
#include <utility>

#include "berth/base/backoff.h"
#include "berth/base/text.h"
#include "berth/cluster/local.h"
#include "berth/cluster/tracing.h"

namespace berth::run {
namespace {

constexpr Duration kCapacityAge = std::chrono::seconds(1);
constexpr Duration kLookForOthers = std::chrono::milliseconds(200);
/// So many starts may pass the first task that finds no room; then what comes free is left for it.
constexpr int kPassings = 16;
/// For so long a source whose worker was lost is left alone.
constexpr Backoff kSourceAgain{std::chrono::milliseconds(500), std::chrono::minutes(1)};
constexpr Duration kSoonest = std::chrono::milliseconds(10);

}  // namespace

Leases::Leases(ActiveRun& run, Context& context, Sources sources, machine::Ledger ledger)
    : run_(run),
      context_(context),
      labels_{{"run", run.record.name}, {"program", run.record.kind}} {
  std::ranges::copy(labels_of(run.record), std::back_inserter(labels_));
  if (!sources.main)
    sources.main = Source{.name = "",
                          .cluster = std::make_unique<cluster::LocalCluster>(
                              run_.env, std::move(ledger), [this] { return read_host(); })};
  sources_.push_back({.source = *std::move(sources.main)});
  for (auto& source : sources.auxiliary) sources_.push_back({.source = std::move(source)});
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i].source;
    source.cluster =
        cluster::tracing(run_.env, std::move(source.cluster), trace_file(run_.directory),
                         source.name, static_cast<std::int64_t>(i));
    source.cluster->on_change([this, i] {
      sources_[i].seek_at.reset();
      sources_[i].tend_at = Mono{};
    });
  }
}

/// The machine as it was at most a second ago. A limit that fell below the machine file's is an
/// error at the start; later the last good reading stands.
Result<machine::Host> Leases::read_host() {
  const Mono now = run_.env.now();
  if (host_ && host_read_at_ && now - *host_read_at_ < kCapacityAge) return *host_;
  const auto capacity = machine::discover(run_.env, context_.capacity);
  if (capacity)
    host_ = machine::host_of(*capacity, context_.devices ? &*context_.devices : nullptr);
  else if (!host_)
    return std::unexpected(capacity.error());
  host_read_at_ = now;
  return *host_;
}

Result<Resources> Leases::largest() {
  if (sources_.size() > 1 || main_is_remote()) return Resources{};
  BERTH_ASSIGN(const auto host, read_host());
  return host.total.resources;
}

void Leases::machine_changed() {
  host_read_at_.reset();
  sources_.front().seek_at.reset();
}

Result<std::optional<Lease>> Leases::seek(const Holdings& holdings) {
  for (auto& from : sources_) {
    if (run_.scheduler->wanting(1).empty()) break;
    const Mono now = run_.env.now();
    if (from.closed || now < from.paused_until || (from.seek_at && now < *from.seek_at)) continue;
    from.seek_at.reset();
    std::optional<Lease> lease;
    if (&from == &sources_.front()) {
      BERTH_ASSIGN(lease, ask_main(holdings));
    } else {
      lease = ask_auxiliary(from, holdings);
    }
    if (from.closed) from.seek_at.reset();
    if (lease) return lease;
  }
  return std::nullopt;
}

void Leases::stop_waiting() {
  for (auto& from : sources_) {
    from.seek_at.reset();
    from.source.cluster->stop_waiting();
  }
}

cluster::Wish Leases::wish(TaskNumber task, std::int64_t width) const {
  const ResourceRequest request = run_.request(task);
  return {.requirements = {request.resources, width},
          .selection = request.selection,
          .priority = run_.record.priority,
          .labels = labels_,
          .avoid = avoided(task)};
}

Lease Leases::lease(Leasing& from, cluster::Alloc alloc, TaskNumber task) {
  from.has_served = true;
  from.refusal.reset();
  from.failing_since.reset();
  Lease lease{.source = static_cast<std::size_t>(&from - sources_.data()),
              .alloc = std::move(alloc),
              .selection = run_.request(task).selection,
              .is_remote = from.source.start_worker != nullptr};
  if (lease.alloc.expires) lease.renew_at = run_.env.now();
  if (!look_at_ && !main_is_remote()) look_at_ = run_.env.now() + kLookForOthers;
  return lease;
}

/// For the first task that finds room: mostly the first in the queue; others may pass it so often.
Result<std::optional<Lease>> Leases::ask_main(const Holdings& holdings) {
  Leasing& from = sources_.front();
  cluster::Cluster& cluster = *from.source.cluster;
  const bool first = !holdings.has_alloc;
  const bool is_remote = main_is_remote();
  const auto wanting = run_.scheduler->wanting();
  if (std::exchange(passed_task_, wanting.front()) != wanting.front()) passed_ = 0;
  const auto needs = run_.scheduler->needs();
  for (std::size_t i = 0; i < wanting.size(); ++i) {
    const bool passes = i > 0;
    if (passes && (first || passed_ == kPassings)) break;
    auto asked = wish(wanting[i], is_remote ? needs[i].width : 1);
    asked.waits = first;
    auto alloc = cluster.allocate(asked);
    if (alloc) {
      if (passes) ++passed_;
      return lease(from, *std::move(alloc), wanting[i]);
    }
    // This machine may grow again after it shrank; what else it says ends this try of the run.
    Error error = std::move(alloc).error();
    const bool waits = error.kind == ErrorKind::busy || error.kind == ErrorKind::impossible;
    if (!is_remote && !waits) return std::unexpected(std::move(error));
    if (passes) continue;
    from.seek_at = cluster.retry_at();
    const bool alone = sources_.size() == 1 && error.kind != ErrorKind::busy;
    if (alone && run_.scheduler->avoided(wanting[i]) != 0) {
      run_.scheduler->settle_for(wanting[i], run_.effects);
      from.seek_at.reset();
      continue;
    }
    if (context_.devices) error.message += machine::unusable_text(*context_.devices);
    on_refusal(from, wanting[i], std::move(error), holdings);
    if (from.closed) break;
  }
  return std::nullopt;
}

/// As much of what finds no room as can be had. Help that fails is no fault of the run.
std::optional<Lease> Leases::ask_auxiliary(Leasing& from, const Holdings& holdings) {
  const auto wanting = run_.scheduler->wanting();
  const auto needs = run_.scheduler->needs();
  cluster::Cluster& cluster = *from.source.cluster;
  for (std::size_t i = 0; i < wanting.size(); ++i) {
    auto alloc = cluster.allocate(wish(wanting[i], needs[i].width));
    if (alloc) return lease(from, *std::move(alloc), wanting[i]);
    if (i == 0) on_refusal(from, wanting[i], std::move(alloc).error(), holdings);
    if (from.closed) return std::nullopt;
  }
  from.seek_at = cluster.retry_at();
  return std::nullopt;
}

void Leases::on_refusal(Leasing& from, TaskNumber task, Error error, const Holdings& holdings) {
  // That there is no other machine than the one to avoid says nothing of the source.
  if (error.kind == ErrorKind::impossible && run_.scheduler->avoided(task) != 0)
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
  const Mono now = run_.env.now();
  if (!as_before) from.failing_since = now;
  const Duration most = lasting ? kRefusedMost : (from.has_served ? kLostMost : kUnreachedMost);
  from.closed = now - *from.failing_since >= most && holdings.silences.empty();
  if (!from.closed && !holdings.has_alloc && sources_.size() == 1) return;  // see waiting_for()
  const std::string text = fmt::format(
      "{} {}: {}", from.closed ? "continues without" : "no help from",
      from.source.name.empty() ? "this machine" : from.source.name, from.refusal->message);
  if (from.noted != text && !(from.closed && no_source_left(holdings))) run_.observer.on_note(text);
  from.noted = text;
}

bool Leases::bound_growth() {
  const auto wanting = run_.scheduler->wanting(1);
  if (wanting.empty()) return false;
  const TaskNumber task = wanting.front();
  const auto history = run_.histories.find(task.value);
  if (history == run_.histories.end() || !history->second.bound.empty()) return false;
  const auto refuses = [&](const Leasing& from) {
    return from.closed || (from.refusal && from.refusal->kind == ErrorKind::impossible &&
                           from.refused_task == task);
  };
  if (!std::ranges::all_of(sources_, refuses)) return false;
  const Resources before = run_.request(task).resources;
  Resources bound = history->second.had;
  for (auto& from : sources_)
    if (const auto offers = from.source.cluster->offers(); offers && !from.closed)
      for (const auto& offer : *offers)
        if (offer.total.resources.get(Known::mem) > bound.get(Known::mem))
          bound = offer.total.resources;
  history->second.bound = bound;
  const Resources after = run_.request(task).resources;
  if (after == before) return false;
  run_.scheduler->resize(task, run_.scheduled(run_.task(task)).resources);
  run_.observer.on_note(fmt::format("{}: no machine has {}: it asks for {}", run_.name_of(task),
                                    to_string(before), to_string(after)));
  for (auto& from : sources_) from.seek_at.reset();
  return true;
}

std::optional<Error> Leases::no_source_left(const Holdings& holdings) const {
  const auto wanting = run_.scheduler->wanting(1);
  if (holdings.has_workers || wanting.empty()) return std::nullopt;
  ErrorKind kind = ErrorKind::impossible;
  for (const auto& from : sources_) {
    if (from.refusal && from.refusal->kind == ErrorKind::unconfirmed) kind = from.refusal->kind;
    const bool impossible = from.source.start_worker && from.refusal &&
                            from.refusal->kind == ErrorKind::impossible &&
                            from.refused_task == wanting.front();
    if (!from.closed && !impossible) return std::nullopt;
  }
  return Error{kind, waiting_for(holdings)};
}

std::string Leases::waiting_for(const Holdings& holdings) const {
  std::vector<std::string> reasons;
  if (!holdings.silences.empty()) reasons.push_back(holdings.silences);
  const auto wanting = run_.scheduler->wanting(1);
  // What is held may be where the task failed.
  const bool avoids =
      !wanting.empty() && !holdings.is_running && run_.scheduler->avoided(wanting.front()) != 0;
  if (wanting.empty() || (holdings.has_alloc && !avoids))
    return holdings.has_alloc ? "" : join(reasons, "; ");
  for (const auto& from : sources_) {
    if (!from.refusal) continue;
    const std::string& name = from.source.name;
    const bool alone = sources_.size() == 1 || name.empty();
    reasons.push_back((alone ? "" : name + ": ") + from.refusal->message);
  }
  const auto machines = avoided(wanting.front());
  if (!machines.empty())
    reasons.push_back(fmt::format("not on {}, where it failed", join(machines, ", ")));
  return join(reasons, "; ");
}

std::int64_t Leases::number_of(const Lease& lease) {
  if (!lease.is_remote) return 0;
  return machines_.try_emplace(lease.alloc.machine, std::ssize(machines_) + 1).first->second;
}

std::vector<std::string> Leases::avoided(TaskNumber task) const {
  std::vector<std::string> names;
  const std::int64_t avoids = run_.scheduler->avoided(task);
  for (const auto& [name, number] : machines_)
    if (number == avoids) names.push_back(name);
  return names;
}

std::optional<Error> Leases::keep(Lease& lease) {
  const Mono now = run_.env.now();
  if (!lease.renew_at || now < *lease.renew_at) return std::nullopt;
  const Mono ends = *lease.alloc.expires;
  const auto until = now < ends ? sources_[lease.source].source.cluster->keepalive(lease.alloc.id)
                                : fail(ErrorKind::stale, "its lease has ended");
  if (until) {
    lease.alloc.expires = *until;
    lease.renew_at.reset();
    if (*until) lease.renew_at = now + (**until - now) / 3;
  } else if (until.error().kind == ErrorKind::stale) {
    lease.renew_at.reset();
    return until.error();
  } else {
    const auto jitter = static_cast<std::int64_t>(run_.env.random() % 512);
    lease.renew_at = now + (ends - now) * (256 + jitter) / 4096 + kSoonest;
  }
  return std::nullopt;
}

void Leases::free(const Lease& lease) {
  (void)sources_[lease.source].source.cluster->free(lease.alloc.id);
}

void Leases::on_lost(const Lease& lease, const Error& because, const Holdings& holdings) {
  Leasing& from = sources_[lease.source];
  if (!from.source.start_worker) return;
  if (because.kind == ErrorKind::unconfirmed) {
    from.refusal = because;
    from.closed = true;
    if (!no_source_left(holdings))
      run_.observer.on_note(
          fmt::format("continues without {}: {}", from.source.name, because.message));
    return;
  }
  from.paused_until = run_.env.now() + kSourceAgain.pause(++from.losses, run_.env.random());
}

/// While others wait, the alloc of each task that ends goes to them: a long sweep shares the
/// machine with what comes after it, trial by trial. Elsewhere nobody tells who waits.
void Leases::turn(bool has_workers) {
  const Mono now = run_.env.now();
  for (auto& from : sources_) {
    if (!from.source.tend || !from.tend_at || now < *from.tend_at) continue;
    from.tend_at.reset();
    const auto next = from.source.tend();
    if (!from.tend_at) from.tend_at = next;  // else something has changed meanwhile
  }
  const bool looks = has_workers && !main_is_remote();
  if (!looks) look_at_.reset();
  if (looks && !look_at_) look_at_ = now;
  if (!look_at_ || now < *look_at_) return;
  look_at_ = now + kLookForOthers;
  others_wait_ = sources_.front().source.cluster->others_wait(run_.record.priority).value_or(false);
}

std::optional<Mono> Leases::deadline() const {
  std::optional<Mono> first = look_at_;
  const auto consider = [&](std::optional<Mono> at) {
    if (at && (!first || *at < *first)) first = at;
  };
  for (const auto& from : sources_) {
    if (from.seek_at) consider(std::max(*from.seek_at, from.paused_until));
    if (from.paused_until > run_.env.now()) consider(from.paused_until);
    if (from.source.tend) consider(from.tend_at);
  }
  return first;
}

}  // namespace berth::run
