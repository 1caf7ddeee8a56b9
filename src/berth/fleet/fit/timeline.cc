// The batch at any moment, rebuilt from when requests started and had their tokens.
#include <algorithm>
#include <cmath>

#include "berth/fleet/fit/observations.h"
#include "berth/fleet/queueing/queue.h"

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

/// When iterations with prompts ended, and how many tokens these had: first tokens that come almost
/// together are of one iteration.
class FirstTokens {
 public:
  FirstTokens(const std::vector<RequestTimes>& requests, double together_ms) {
    std::vector<std::pair<double, double>> at;
    for (const auto& request : requests)
      at.emplace_back(request.start_ms + request.ttft_ms, request.in_tokens);
    std::ranges::sort(at);
    for (const auto& [ms, tokens] : at) {
      if (end_ms_.empty() || ms > end_ms_.back() + together_ms) {
        end_ms_.push_back(ms);
        tokens_.push_back(0);
      }
      tokens_.back() += tokens;
    }
    sums_.emplace_back();
    for (const double tokens : tokens_) {
      const Sum& last = sums_.back();
      sums_.push_back({last.count + 1, last.tokens + tokens, last.square + tokens * tokens});
    }
  }
  struct Sum {
    double count = 0, tokens = 0, square = 0;
  };
  Sum between(double from_ms, double to_ms) const {  // after `from_ms`, up to `to_ms`
    const Sum &from = sums_[index(from_ms)], &to = sums_[index(std::max(from_ms, to_ms))];
    return {to.count - from.count, to.tokens - from.tokens, to.square - from.square};
  }
  /// The tokens of each, or of evenly chosen ones.
  std::vector<float> each_between(double from_ms, double to_ms) const {
    constexpr std::size_t kMostKept = 200;
    const std::size_t from = index(from_ms), to = index(std::max(from_ms, to_ms));
    std::vector<float> each;
    for (std::size_t i = from; i < to; i += (to - from) / kMostKept + 1)
      each.push_back(static_cast<float>(tokens_[i]));
    return each;
  }

 private:
  std::size_t index(double ms) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(end_ms_, ms) - end_ms_.begin());
  }
  std::vector<double> end_ms_, tokens_;
  std::vector<Sum> sums_;
};

constexpr double kTogether = 0.25;  // of the time between two tokens
constexpr std::size_t kMostChanges = 1'000'000;

class Timeline {
 public:
  Timeline(const OperatingPoint& point, std::size_t most)
      : point_(point),
        most_(most),
        wait_(point.max_concurrency ? 1 : 0.5),
        first_tokens_(point.timeline, kTogether * point.itl_ms.mean) {
    std::size_t gaps = 0;
    for (const auto& request : point_.timeline) gaps += request.gaps_ms.size();
    every_ = gaps / most_ + 1;
    for (const auto& request : point.timeline) add_presence(request, gaps / kMostChanges + 1);
    decoding_.finish();
    context_.finish();
  }

  std::vector<Observation> observations() {
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
  /// A request that decodes, and the tokens that it attends to, which are exact every `stride`
  /// gaps.
  void add_presence(const RequestTimes& request, std::size_t stride) {
    const double first_ms = request.start_ms + request.ttft_ms, end_ms = request.end_ms();
    if (end_ms <= first_ms) return;
    decoding_.change(first_ms, 1, 0);
    decoding_.change(end_ms, -1, 0);
    double context = request.in_tokens;
    const auto grow = [&](double from_ms, double to_ms, double tokens) {
      if (to_ms <= from_ms) return;
      const double slope = tokens / (to_ms - from_ms);
      context_.change(from_ms, context, slope);
      context += tokens;
      context_.change(to_ms, -context, -slope);
    };
    if (request.gaps_ms.empty()) return grow(first_ms, end_ms, request.out_tokens);
    double at_ms = first_ms, from_ms = first_ms, tokens = 0;
    for (std::size_t i = 0; i < request.gaps_ms.size(); ++i) {
      at_ms += request.gaps_ms[i];
      tokens += request.out_tokens / static_cast<double>(request.gaps_ms.size());
      if ((i + 1) % stride != 0 && i + 1 < request.gaps_ms.size()) continue;
      grow(from_ms, at_ms, tokens);
      from_ms = at_ms;
      tokens = 0;
    }
  }

  void add(Observation each, double end_ms) {
    if (end_ms < point_.complete_until_ms && each.ms > 0) all_.push_back(std::move(each));
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
           .bare_iterations = prefill ? 0.0 : 1.0,
           .prefill_iterations = prefill ? 1.0 : 0.0,
           .decoding = batch,
           .prefill_tokens = prompts.tokens,
           .prefill_square = prompts.tokens * prompts.tokens,
           .context_tokens = context_.mean(from_ms, at_ms) + prompts.tokens,
           .ms = gap_ms,
           .independent = std::min(1.0, static_cast<double>(every_) / batch)},
          at_ms);
    }
  }

  /// All iterations in which a request decodes, of which the mean is known.
  void add_mean(const RequestTimes& request) {
    const double from_ms = request.start_ms + request.ttft_ms, to_ms = request.end_ms();
    const double iterations = request.out_tokens - 1;
    const auto prompts = first_tokens_.between(from_ms, to_ms);
    const double busy = std::min(1.0, prompts.count / iterations);
    add({.phase = Phase::itl,
         .bare_iterations = 1 - busy,
         .prefill_iterations = busy,
         .decoding = std::max(1.0, decoding_.mean(from_ms, to_ms)),
         .prefill_tokens = prompts.tokens / iterations,
         .prefill_square = prompts.square / iterations,
         .prompts = first_tokens_.each_between(from_ms, to_ms),
         .context_tokens = context_.mean(from_ms, to_ms) + prompts.tokens / iterations,
         .ms = request.itl_ms,
         .weight = iterations / (iterations + 20)},
        to_ms);
  }

  /// What is left of the iteration that is under way when the request comes, then its own.
  void add_first_token(const RequestTimes& request) {
    const double from_ms = request.start_ms, to_ms = from_ms + request.ttft_ms;
    const double half_ms = point_.itl_ms.mean / 2;
    const double decoding = decoding_.mean(from_ms, to_ms);
    const double context = context_.mean(from_ms, to_ms);
    const double wait = decoding > 0.5 ? wait_ : 0;
    const double chunks = std::max(1.0, std::ceil(request.in_tokens / kBatchTokens));
    const auto own = first_tokens_.between(to_ms - half_ms, to_ms + half_ms);
    const auto before = first_tokens_.between(from_ms, to_ms - half_ms);
    const double joined = std::max(own.tokens, request.in_tokens);
    const double earlier = before.count > 0 ? before.tokens / before.count : 0;
    const double tokens = joined + wait * earlier;
    const double busy = before.count > 0 ? 1 : 0;
    add({.phase = Phase::ttft,
         .bare_iterations = wait * (1 - busy),
         .prefill_iterations = chunks + wait * busy,
         .decoding = (chunks + wait) * decoding,
         .prefill_tokens = tokens,
         .prefill_square = joined * joined / chunks + wait * earlier * earlier,
         .context_tokens =
             (chunks + wait) * context + tokens + request.in_tokens * (chunks - 1) / 2,
         .ms = request.ttft_ms},
        to_ms);
  }

  const OperatingPoint& point_;
  const std::size_t most_;
  // The part of an iteration that a request waits for: in a closed loop it follows the end of
  // another, so that it just misses one.
  const double wait_;
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
