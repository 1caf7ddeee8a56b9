// The batch at any moment, rebuilt from when requests started and had their tokens.
#include <algorithm>
#include <cmath>

#include "berth/fleet/observations.h"

namespace berth::fleet {
namespace {

/// A sum over time of what is piecewise linear: its integral from the beginning to any moment.
class Integral {
 public:
  /// From `at_ms` on the value is `level` more, and grows by `slope` a ms more.
  void change(double at_ms, double level, double slope) {
    changes_.push_back({at_ms, level, slope, 0});
  }
  void finish() {
    std::ranges::sort(changes_, {}, &Change::at_ms);
    double level = 0, slope = 0, sum = 0, before = changes_.empty() ? 0 : changes_.front().at_ms;
    for (auto& change : changes_) {
      const double passed = change.at_ms - before;
      sum += passed * (level + slope * passed / 2);
      level += slope * passed + change.level;
      slope += change.slope;
      before = change.at_ms;
      change = {before, level, slope, sum};
    }
  }
  double mean(double from_ms, double to_ms) const {
    return to_ms > from_ms ? (until(to_ms) - until(from_ms)) / (to_ms - from_ms) : 0;
  }

 private:
  struct Change {
    double at_ms, level, slope, sum;
  };
  double until(double at_ms) const {
    const auto next = std::ranges::upper_bound(changes_, at_ms, {}, &Change::at_ms);
    if (next == changes_.begin()) return 0;
    const Change& last = *std::prev(next);
    const double passed = at_ms - last.at_ms;
    return last.sum + passed * (last.level + last.slope * passed / 2);
  }
  std::vector<Change> changes_;
};

/// First tokens, and how many tokens their prompts have.
class FirstTokens {
 public:
  explicit FirstTokens(const std::vector<RequestTimes>& requests) {
    for (const auto& request : requests)
      at_.push_back({request.start_ms + request.ttft_ms, request.in_tokens});
    std::ranges::sort(at_);
    sums_.push_back(0);
    for (const auto& [ms, tokens] : at_) sums_.push_back(sums_.back() + tokens);
  }
  struct Sum {
    double count = 0, tokens = 0;
  };
  Sum between(double from_ms, double to_ms) const {  // after `from_ms`, up to `to_ms`
    const std::size_t from = index(from_ms), to = std::max(from, index(to_ms));
    return {static_cast<double>(to - from), sums_[to] - sums_[from]};
  }

 private:
  std::size_t index(double ms) const {
    return static_cast<std::size_t>(
        std::ranges::upper_bound(at_, ms, {}, &std::pair<double, double>::first) - at_.begin());
  }
  std::vector<std::pair<double, double>> at_;
  std::vector<double> sums_;
};

class Timeline {
 public:
  Timeline(const OperatingPoint& point, std::size_t most)
      : point_(point), most_(most), first_tokens_(point.timeline) {
    for (const auto& request : point.timeline) {
      const double first_ms = request.start_ms + request.ttft_ms, end_ms = request.end_ms();
      if (end_ms <= first_ms) continue;
      const double n = request.in_tokens, m = request.out_tokens;
      const double slope = m / (end_ms - first_ms);
      decoding_.change(first_ms, 1, 0);
      decoding_.change(end_ms, -1, 0);
      context_.change(first_ms, n, slope);
      context_.change(end_ms, -n - m, -slope);
    }
    decoding_.finish();
    context_.finish();
  }

  std::vector<Observation> observations() {
    std::size_t gaps = 0;
    for (const auto& request : point_.timeline) gaps += request.gaps_ms.size();
    every_ = gaps / most_ + 1;
    const std::size_t every_request = point_.timeline.size() / most_ + 1;
    for (std::size_t i = 0; i < point_.timeline.size(); ++i) {
      const auto& request = point_.timeline[i];
      add_gaps(request);
      if (i % every_request != 0) continue;
      if (request.gaps_ms.empty() && request.out_tokens > 1) add_mean(request);
      add_first_token(request);
    }
    return std::move(all_);
  }

 private:
  void add(const Observation& each, double end_ms) {
    if (end_ms < point_.complete_until_ms && each.ms > 0) all_.push_back(each);
  }

  /// The iterations between two tokens of a request. All requests of an iteration tell of it: it
  /// counts as often as clients felt it, but is one measurement.
  void add_gaps(const RequestTimes& request) {
    double at_ms = request.start_ms + request.ttft_ms;
    for (const float gap_ms : request.gaps_ms) {
      const double from_ms = at_ms;
      at_ms += gap_ms;
      if (seen_++ % every_ != 0 || gap_ms <= 0) continue;
      const double batch = std::max(1.0, decoding_.mean(from_ms, at_ms));
      // The first token of a prompt comes with the tokens of its iteration, give or take the way.
      const auto prompts = first_tokens_.between(at_ms - gap_ms / 2, at_ms + gap_ms / 2);
      const bool prefill = prompts.count > 0;
      add({.phase = prefill ? Phase::prefill : Phase::decode,
           .bare_steps = prefill ? 0.0 : 1.0,
           .prefill_steps = prefill ? 1.0 : 0.0,
           .decoding = batch,
           .prefill_tokens = prompts.tokens,
           .context_tokens = context_.mean(from_ms, at_ms) + prompts.tokens,
           .ms = gap_ms,
           .share = std::min(1.0, static_cast<double>(every_) / batch)},
          at_ms);
    }
  }

  /// All iterations in which a request decodes, of which the mean is known.
  void add_mean(const RequestTimes& request) {
    const double from_ms = request.start_ms + request.ttft_ms, to_ms = request.end_ms();
    const double steps = request.out_tokens - 1;
    const auto prompts = first_tokens_.between(from_ms, to_ms);
    const double busy = std::min(1.0, prompts.count / steps);
    add({.phase = Phase::itl,
         .bare_steps = 1 - busy,
         .prefill_steps = busy,
         .decoding = std::max(1.0, decoding_.mean(from_ms, to_ms)),
         .prefill_tokens = prompts.tokens / steps,
         .context_tokens = context_.mean(from_ms, to_ms) + prompts.tokens / steps,
         .ms = request.itl_ms,
         .weight = steps / (steps + 20)},
        to_ms);
  }

  /// Half of the iteration that is under way when the request comes, then its own.
  void add_first_token(const RequestTimes& request) {
    const double from_ms = request.start_ms, to_ms = from_ms + request.ttft_ms;
    const double half_ms = point_.itl_ms.mean / 2;
    const double decoding = decoding_.mean(from_ms, to_ms);
    const double context = context_.mean(from_ms, to_ms);
    const double wait = decoding > 0.5 ? 0.5 : 0;
    const double chunks = std::max(1.0, std::ceil(request.in_tokens / kFitChunkTokens));
    const auto own = first_tokens_.between(to_ms - half_ms, to_ms + half_ms);
    const auto before = first_tokens_.between(from_ms, to_ms - half_ms);
    const double tokens = std::max(own.tokens, request.in_tokens) + wait * before.tokens;
    const double busy = before.count > 0 ? 1 : 0;
    add({.phase = Phase::ttft,
         .bare_steps = wait * (1 - busy),
         .prefill_steps = chunks + wait * busy,
         .decoding = (chunks + wait) * decoding,
         .prefill_tokens = tokens,
         .context_tokens =
             (chunks + wait) * context + tokens + request.in_tokens * (chunks - 1) / 2,
         .ms = request.ttft_ms},
        to_ms);
  }

  const OperatingPoint& point_;
  const std::size_t most_;
  std::size_t every_ = 1, seen_ = 0;
  FirstTokens first_tokens_;
  Integral decoding_, context_;
  std::vector<Observation> all_;
};

}  // namespace

std::vector<Observation> timeline_observations(const OperatingPoint& point, std::size_t most) {
  return Timeline(point, most).observations();
}

}  // namespace berth::fleet
