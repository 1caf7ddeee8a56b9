#include "berth/fleet/simulate/simulator.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "berth/base/rng.h"
#include "berth/fleet/queueing/queue.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kStretches = 3;            // of a request, or fewer as a rule
constexpr std::size_t kMostReserved = 1U << 21;  // 64 MiB
constexpr double kForever = std::numeric_limits<double>::infinity();

/// Iterations that follow one another with the same requests: each takes growth_ms more than the
/// one before.
struct Stretch {
  double begin_ms = 0, first_ms = 0, growth_ms = 0;
  std::int64_t count = 0;

  /// When the i-th iteration begins; the count-th is the end.
  double boundary_ms(std::int64_t i) const {
    const auto n = static_cast<double>(i);
    return begin_ms + n * first_ms + growth_ms * (n * (n - 1) / 2);
  }
  /// The first iteration that begins at a time or later; `count` if none does.
  std::int64_t first_from(double ms) const {
    const double gone_ms = ms - begin_ms;
    if (gone_ms <= 0) return 0;
    // The positive root of boundary_ms(i) = ms, in the form that is exact for little growth.
    const double b = first_ms - growth_ms / 2;
    const double root = 2 * gone_ms / (b + std::sqrt(b * b + 2 * growth_ms * gone_ms));
    auto i = static_cast<std::int64_t>(std::min(static_cast<double>(count), std::ceil(root)));
    while (i > 0 && boundary_ms(i - 1) >= ms) --i;
    while (i < count && boundary_ms(i) < ms) ++i;
    return i;
  }
};

/// What the replicas of a deployment share.
struct History {
  const Deployment& deployment;
  std::span<const Request> requests;
  double ms_per_unit;
  Window window;
  std::vector<double> ttft_ms;  // by request; NaN: lost
  Outcome outcome;
  double busy_ms = 0;  // time that requests spent in service, added up
  double end_ms = 0;   // of the last iteration

  double arrival_ms(std::uint32_t request) const { return requests[request].arrival * ms_per_unit; }
  bool measures(double ms) const { return ms >= window.from_ms && ms < window.until_ms; }
};

/// One replica. The requests that it has taken stand in order of arrival: first those whose prompts
/// are prefilled, from `prefilling_` on those in the batch whose prompts are not, from `waiting_`
/// on those outside. What has been begun is a Stretch, and is entered into the books when it has
/// ended: until then an arrival may still cut it short.
class Replica {
 public:
  explicit Replica(History& history) : history_(&history) {}

  /// Goes through all that ends before a time.
  void advance(double until_ms) {
    while (end_ms_ < until_ms) {
      end_stretch();
      begin_stretch();
    }
  }
  /// After advance() to the time of arrival.
  std::int64_t present() const { return in_batch() + std::ssize(taken_) - waiting_; }

  /// A request arrives, after advance() to that time. False: it is lost.
  bool take(std::uint32_t request, double arrival_ms) {
    const std::int64_t batch = history_->deployment.batch;
    if (present() >= batch + history_->deployment.queue) return false;
    const bool is_first_to_wait = waiting_ == std::ssize(taken_);
    taken_.push_back(request);
    if (end_ms_ == kForever) {
      stretch_ = {.begin_ms = arrival_ms};
      end_ms_ = arrival_ms;
    } else if (is_first_to_wait && stretch_.count > 1 && in_batch() < batch) {
      stretch_.count = std::max<std::int64_t>(1, stretch_.first_from(arrival_ms));
      end_ms_ = stretch_.boundary_ms(stretch_.count);
    }
    return true;
  }

 private:
  struct Decoding {
    std::int64_t last;     // the number of the iteration with its last token
    std::int64_t context;  // tokens of its prompt and output
    bool operator>(const Decoding& other) const { return last > other.last; }
  };

  std::int64_t in_batch() const { return std::ssize(decoding_) + waiting_ - prefilling_; }

  void end_stretch() {
    measure();
    for (; first_gaps_ > 0; --first_gaps_) measure_first_gap(taken_[at(prefilling_ - first_gaps_)]);
    iteration_ += stretch_.count;
    context_ += stretch_.count * std::ssize(decoding_);
    while (!decoding_.empty() && decoding_.front().last == iteration_) {
      context_ -= decoding_.front().context;
      std::ranges::pop_heap(decoding_, std::greater{});
      decoding_.pop_back();
      complete();
    }
    for (; prefilling_ < prefilled_; ++prefilling_) give_first_token(taken_[at(prefilling_)]);
  }

  void give_first_token(std::uint32_t index) {
    const Request& request = history_->requests[index];
    const Deployment& deployment = history_->deployment;
    history_->ttft_ms[index] = end_ms_ - history_->arrival_ms(index) + deployment.ttft_offset_ms +
                               deployment.ttft_per_token_ms * request.in_tokens;
    if (request.out_tokens <= 1) return complete();
    decode(request);
  }

  /// The request has its first token, and its others from the next iteration on.
  void decode(const Request& request) {
    context_ += std::int64_t{request.in_tokens} + 1;
    decoding_.push_back({iteration_ + request.out_tokens - 1,
                         std::int64_t{request.in_tokens} + request.out_tokens});
    std::ranges::push_heap(decoding_, std::greater{});
  }

  /// Where replicas only decode: the gap before the first token of a request that has come since
  /// the iteration before.
  void measure_first_gap(std::uint32_t index) {
    const double gap_ms = end_ms_ - history_->arrival_ms(index);
    history_->ttft_ms[index] = gap_ms;
    if (history_->measures(stretch_.begin_ms)) history_->outcome.itl.add(gap_ms, 0, 1, 1);
  }

  void complete() { history_->outcome.completed += history_->measures(end_ms_) ? 1 : 0; }

  void begin_stretch() {
    const Deployment& deployment = history_->deployment;
    const std::int64_t places = deployment.batch - in_batch();
    waiting_ += std::min(places, std::ssize(taken_) - waiting_);
    if (deployment.only_decodes)
      for (; prefilling_ < waiting_; ++prefilling_, ++first_gaps_)
        decode(history_->requests[taken_[at(prefilling_)]]);
    const auto decoding = std::ssize(decoding_);
    if (in_batch() == 0) {
      end_ms_ = kForever;
      return;
    }
    stretch_ = {.begin_ms = end_ms_, .count = 1};
    if (prefilling_ < waiting_) {
      const auto [tokens, read] = prefill(std::max<std::int64_t>(0, deployment.budget - decoding));
      stretch_.first_ms = step_ms(tokens, context_ + read);
    } else {
      stretch_.first_ms = step_ms(0, context_);
      stretch_.growth_ms = deployment.step.gamma_ms * static_cast<double>(decoding);
      stretch_.count = first_gaps_ > 0 ? 1 : decoding_.front().last - iteration_;
    }
    end_ms_ = stretch_.boundary_ms(stretch_.count);
  }

  double step_ms(std::int64_t tokens, std::int64_t context) const {
    return history_->deployment.step.at(static_cast<double>(tokens),
                                        static_cast<double>(decoding_.size()),
                                        static_cast<double>(context));
  }

  struct Prefill {
    std::int64_t tokens = 0, read = 0;
  };
  /// Gives prompts, in order, what the iteration has room for; those before `prefilled_` are done
  /// with it, and of the one there `done_` tokens are.
  Prefill prefill(std::int64_t budget) {
    Prefill all;
    for (; prefilled_ < waiting_; ++prefilled_, done_ = 0) {
      const std::int64_t prompt = history_->requests[taken_[at(prefilled_)]].in_tokens;
      const std::int64_t chunk = std::min(prompt - done_, budget - all.tokens);
      if (chunk > 0) {
        done_ += chunk;
        all.tokens += chunk;
        all.read += done_;
      }
      if (done_ < prompt) break;
    }
    return all;
  }

  /// Enters the iterations of the stretch that begin within the window.
  void measure() {
    const auto decoding = std::ssize(decoding_);
    const std::int64_t gaps = decoding - first_gaps_;
    const std::int64_t from = stretch_.first_from(history_->window.from_ms);
    const std::int64_t until = end_ms_ <= history_->window.until_ms
                                   ? stretch_.count
                                   : stretch_.first_from(history_->window.until_ms);
    if (from >= until) return;
    history_->busy_ms += (stretch_.boundary_ms(until) - stretch_.boundary_ms(from)) *
                         static_cast<double>(decoding + waiting_ - prefilling_);
    history_->end_ms = std::max(history_->end_ms, end_ms_);
    if (gaps > 0)
      history_->outcome.itl.add(stretch_.first_ms + stretch_.growth_ms * static_cast<double>(from),
                                stretch_.growth_ms, until - from, gaps);
  }

  static std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

  History* history_;
  std::vector<std::uint32_t> taken_;
  std::int64_t prefilling_ = 0, prefilled_ = 0, waiting_ = 0;  // places in taken_
  std::int64_t done_ = 0;                                      // of the prompt at prefilled_
  std::int64_t first_gaps_ = 0;     // before prefilling_: decode their first token now
  std::vector<Decoding> decoding_;  // a heap, the first to end on top
  std::int64_t iteration_ = 0;      // how many have ended
  std::int64_t context_ = 0;        // what the next iteration reads of the requests that decode
  Stretch stretch_;
  double end_ms_ = kForever;  // of the stretch; never: the replica is idle
};

/// Chooses a replica for each request.
class Router {
 public:
  Router(Routing routing, std::uint64_t seed)
      : routing_(routing), rng_(seed_of(seed, Stream::routing)) {}

  /// Of the first `count` replicas.
  std::size_t choose(std::vector<Replica>& replicas, std::size_t count, double now_ms) {
    if (count == 1) return 0;
    if (routing_ == Routing::random) return static_cast<std::size_t>(rng_.below(count));
    std::size_t best = next_ % count;
    if (routing_ == Routing::least_loaded) {
      std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t r = (next_ + i) % count;
        replicas[r].advance(now_ms);
        if (replicas[r].present() < fewest) fewest = replicas[r].present(), best = r;
      }
    }
    next_ = (best + 1) % count;
    return best;
  }

 private:
  Routing routing_;
  Rng rng_;
  std::size_t next_ = 0;
};

std::size_t most_replicas(const Deployment& deployment) {
  int most = deployment.replicas;
  for (const auto& change : deployment.changes) most = std::max(most, change.replicas);
  return static_cast<std::size_t>(most);
}

Status wanted(std::string_view field, std::string_view what, double found) {
  return fail(ErrorKind::invalid, "{}: expected {}, got {}", field, what, found);
}

}  // namespace

Status check(const Deployment& d) {
  for (const auto& [field, ms] : {std::pair{"alpha", d.step.alpha_ms},
                                  {"beta", d.step.beta_ms},
                                  {"gamma", d.step.gamma_ms},
                                  {"betaPrefill", d.step.beta_prefill_ms},
                                  {"ttftOffset", d.ttft_offset_ms},
                                  {"transfer.perToken", d.ttft_per_token_ms}})
    if (!(ms >= 0) || !std::isfinite(ms)) return wanted(field, "at least 0", ms);
  if (d.step.alpha_ms + d.step.beta_ms + d.step.gamma_ms == 0)
    return fail(ErrorKind::invalid, "alpha, beta and gamma are all zero");
  if (d.batch < 1 || d.batch > kMostBatch) return wanted("batch", "1 to 1000000", d.batch);
  if (d.queue < 0 || d.queue > kNoQueueLimit)
    return wanted("queue", "at least 0", static_cast<double>(d.queue));
  if (d.budget < 1) return wanted("budget", "at least 1", static_cast<double>(d.budget));
  if (d.replicas < 1 || d.replicas > kMostSimulatedReplicas)
    return wanted("replicas", "1 to 100000", d.replicas);
  for (std::size_t i = 0; i < d.changes.size(); ++i) {
    if (d.changes[i].replicas < 1 || d.changes[i].replicas > kMostSimulatedReplicas)
      return wanted("replicas of a change", "1 to 100000", d.changes[i].replicas);
    if (!std::isfinite(d.changes[i].at_ms) ||
        (i > 0 && d.changes[i].at_ms < d.changes[i - 1].at_ms))
      return wanted("the time of a change", "no time before the one before", d.changes[i].at_ms);
  }
  return {};
}

double mean_replicas(const Deployment& deployment, double from_ms, double until_ms) {
  if (deployment.changes.empty() || !(until_ms > from_ms)) return deployment.replicas;
  double sum_ms = 0, at_ms = from_ms;
  int replicas = deployment.replicas;
  for (const auto& change : deployment.changes) {
    const double next_ms = std::clamp(change.at_ms, at_ms, until_ms);
    sum_ms += replicas * (next_ms - at_ms);
    at_ms = next_ms, replicas = change.replicas;
  }
  return (sum_ms + replicas * (until_ms - at_ms)) / (until_ms - from_ms);
}

Outcome simulate(const Deployment& deployment, std::span<const Request> requests,
                 double ms_per_unit, const Window& window, std::uint64_t seed,
                 std::vector<double>* ttft_by_request) {
  BERTH_ASSERT(check(deployment) && requests.size() <= kMostRequests);
  History history{deployment, requests, ms_per_unit, window, {}, {}, 0, 0};
  history.ttft_ms.assign(requests.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<Replica> replicas(most_replicas(deployment), Replica(history));
  history.outcome.itl.reserve(std::min(kStretches * requests.size(), kMostReserved));
  Router router(deployment.routing, seed);
  int given = deployment.replicas;
  auto change = deployment.changes.begin();
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    const double now_ms = history.arrival_ms(i);
    for (; change != deployment.changes.end() && change->at_ms <= now_ms; ++change)
      given = change->replicas;
    Replica& replica = replicas[router.choose(replicas, static_cast<std::size_t>(given), now_ms)];
    replica.advance(now_ms);
    if (!replica.take(i, now_ms) && history.measures(now_ms)) ++history.outcome.lost;
  }
  for (auto& replica : replicas) replica.advance(kForever);
  Outcome& outcome = history.outcome;
  outcome.ttft_ms.reserve(requests.size());
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    if (!std::isnan(history.ttft_ms[i]) && history.measures(history.arrival_ms(i)))
      outcome.ttft_ms.push_back(history.ttft_ms[i]);
  if (ttft_by_request != nullptr) *ttft_by_request = std::move(history.ttft_ms);
  outcome.window_ms = std::max(0.0, std::min(window.until_ms, history.end_ms) - window.from_ms);
  outcome.in_service = outcome.window_ms > 0 ? history.busy_ms / outcome.window_ms : 0;
  outcome.slots = mean_replicas(deployment, window.from_ms, window.from_ms + outcome.window_ms) *
                  deployment.batch;
  return std::move(outcome);
}

Outcome simulate_split(const Deployment& prefill, const Deployment& decode,
                       std::span<const Request> requests, double ms_per_unit, const Window& window,
                       std::uint64_t seed) {
  BERTH_ASSERT(decode.only_decodes && !prefill.only_decodes);
  std::vector<Request> first_tokens(requests.begin(), requests.end()), others;
  for (Request& request : first_tokens) request.out_tokens = std::min(request.out_tokens, 1);
  std::vector<double> ttft_ms;
  Outcome all = simulate(prefill, first_tokens, ms_per_unit, window, seed, &ttft_ms);
  all.completed = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (std::isnan(ttft_ms[i])) continue;
    const double from_ms = requests[i].arrival * ms_per_unit + ttft_ms[i];
    if (requests[i].out_tokens > 1)
      others.push_back({from_ms, requests[i].in_tokens, requests[i].out_tokens});
    else if (from_ms >= window.from_ms && from_ms < window.until_ms)
      ++all.completed;
  }
  std::ranges::stable_sort(others, {}, &Request::arrival);
  const Outcome decoded = simulate(decode, others, 1, window, seed_of(seed, Stream::routing, 1));
  all.itl = decoded.itl;
  all.lost += decoded.lost;
  all.lost_late = decoded.lost;
  all.completed += decoded.completed;
  all.window_ms = std::max(all.window_ms, decoded.window_ms);
  all.in_service += decoded.in_service;
  all.slots += decoded.slots;
  return all;
}

Window steady_window(std::span<const Request> requests, double ms_per_unit, double part) {
  if (requests.empty()) return {};
  const auto first =
      static_cast<std::size_t>(std::floor(part * static_cast<double>(requests.size() - 1)));
  return {requests[first].arrival * ms_per_unit, requests.back().arrival * ms_per_unit};
}

std::vector<double> quantiles(std::vector<double> values, std::span<const double> parts) {
  std::vector<double> found(parts.size());
  if (values.empty()) return found;
  const auto count = static_cast<double>(values.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double rank = std::clamp(std::ceil(parts[i] * count), 1.0, count);
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
    std::ranges::nth_element(values, place);
    found[i] = *place;
  }
  return found;
}

void Outcome::add(const Outcome& other) {
  ttft_ms.insert(ttft_ms.end(), other.ttft_ms.begin(), other.ttft_ms.end());
  itl.add(other.itl);
  lost += other.lost;
  lost_late += other.lost_late;
  completed += other.completed;
  window_ms = std::max(window_ms, other.window_ms);
  in_service += other.in_service;
  slots += other.slots;
}

double Outcome::mean_ttft_ms() const {
  double sum_ms = 0;
  for (const double ms : ttft_ms) sum_ms += ms;
  return ttft_ms.empty() ? 0 : sum_ms / static_cast<double>(ttft_ms.size());
}

double Outcome::throughput_per_min() const {
  return window_ms > 0 ? 60'000 * static_cast<double>(completed) / window_ms : 0;
}

double Outcome::lost_part() const {
  const double arrived =
      static_cast<double>(ttft_ms.size()) + static_cast<double>(lost - lost_late);
  return arrived > 0 ? static_cast<double>(lost) / arrived : 0;
}

}  // namespace berth::fleet
