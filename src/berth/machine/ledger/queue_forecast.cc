#include "berth/machine/ledger/queue_forecast.h"

#include <algorithm>
#include <deque>
#include <set>

namespace berth::machine {
namespace {

/// Ends of tasks that are played at most; beyond that nothing is told.
constexpr int kMostEnds = 100'000;
constexpr Duration kNever = Duration::max();

struct Holding {
  std::size_t run = 0;
  std::int64_t priority = 0;
  Reservation part;
  Duration ends = kNever;
};

struct Waiting {
  std::size_t run = 0;
  std::int64_t priority = 0;
  Resources resources;
  std::optional<std::size_t> forecast;  // nullopt: of a run that comes back to the queue
};

/// What asks for such a block: whole devices are asked for by their number alone.
Resources asked_for(const Block& block) {
  Resources resources = block.resources;
  if (resources.get(Known::gpu) > 0) {
    resources.set(Known::gpu_mem, 0);
    resources.set(Known::gpu_slots, 0);
  }
  return resources;
}

/// The machine and its queue, at one moment after the other.
class Play {
 public:
  Play(const Host& host, std::span<const LedgerEntry> entries,
       std::span<const EntryOutlook> outlooks, std::span<const RunOutlook> runs)
      : machine_(host.total, host.links), runs_(runs.begin(), runs.end()) {
    for (const auto& [who, block] : host.foreign)
      if (auto part = machine_.occupy(block, who)) foreign_.push_back(*std::move(part));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& [run, left] = outlooks[i];
      if (entries[i].waiting) {
        queue_.push_back({run, entries[i].priority, entries[i].block.resources, forecasts_.size()});
        forecasts_.emplace_back();
      } else if (auto part = machine_.occupy(entries[i].block, entries[i].label)) {
        holdings_.push_back({run, entries[i].priority, *std::move(part), left.value_or(kNever)});
      }
    }
    open_ = forecasts_.size();
  }

  std::vector<StartForecast> run() {
    for (int ends = 0; ends < kMostEnds; ++ends) {
      while (start_first()) {
      }
      if (open_ == 0 || !end_next()) break;
    }
    std::set<std::size_t> unknown;
    for (const auto& each : holdings_)
      if (each.ends == kNever) unknown.insert(each.run);
    for (auto& each : forecasts_)
      if (!each.start) each.by.assign(unknown.begin(), unknown.end());
    return std::move(forecasts_);
  }

 private:
  bool start_first() {
    if (queue_.empty()) return false;
    const Waiting& first = queue_.front();
    auto part = machine_.reserve({first.resources, {}, {}});
    if (!part) return false;
    if (first.forecast) {
      forecasts_[*first.forecast] = {now_, {ended_.begin(), ended_.end()}};
      --open_;
    }
    holdings_.push_back({first.run, first.priority, *std::move(part), after_task(first.run)});
    queue_.pop_front();
    return true;
  }

  Duration after_task(std::size_t run) const {
    const auto takes = runs_[run].takes;
    return takes && *takes < kNever - now_ ? now_ + *takes : kNever;
  }

  /// The task ends that ends next; false: of none it is known.
  bool end_next() {
    const auto next = std::ranges::min_element(holdings_, {}, &Holding::ends);
    if (next == holdings_.end() || next->ends == kNever) return false;
    now_ = next->ends;
    RunOutlook& run = runs_[next->run];
    const bool others_wait = std::ranges::any_of(
        queue_, [&](const Waiting& other) { return other.priority >= next->priority; });
    if (run.tasks > 0 && !others_wait) {
      --run.tasks;
      next->ends = after_task(next->run);
      return true;
    }
    ended_.insert(next->run);
    Waiting again{next->run, next->priority, asked_for(next->part.block()), std::nullopt};
    holdings_.erase(next);
    if (run.tasks > 0 &&
        std::ranges::find(holdings_, again.run, &Holding::run) == holdings_.end() &&
        std::ranges::find(queue_, again.run, &Waiting::run) == queue_.end()) {
      --run.tasks;
      const auto behind = std::ranges::find_if(
          queue_, [&](const Waiting& other) { return other.priority < again.priority; });
      queue_.insert(behind, std::move(again));
    }
    return true;
  }

  Machine machine_;
  std::vector<RunOutlook> runs_;
  std::vector<Reservation> foreign_;
  std::vector<Holding> holdings_;
  std::deque<Waiting> queue_;
  std::vector<StartForecast> forecasts_;
  std::size_t open_ = 0;         // forecasts that are not made yet
  std::set<std::size_t> ended_;  // runs of which something was given back so far
  Duration now_{};
};

}  // namespace

std::vector<StartForecast> forecast_starts(const Host& host, std::span<const LedgerEntry> entries,
                                           std::span<const EntryOutlook> outlooks,
                                           std::span<const RunOutlook> runs) {
  return Play(host, entries, outlooks, runs).run();
}

}  // namespace berth::machine
