// The simulator against a second one that goes token by token and shares nothing with it but the
// requests; and against what is known of simple cases.
#include "berth/fleet/simulate/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

constexpr std::array<double, 4> kPercentileParts{0.5, 0.9, 0.95, 0.99};

// ---- Token by token -----------------------------------------------------------------------------

struct NaiveRequest {
  double arrival = 0;
  long prompt = 0, output = 0;
  long prefilled = 0, produced = 0;
  long made = 0;  // here, where prompts come prefilled
};

struct NaiveResult {
  std::vector<double> ttft, itl;
  long lost = 0, completed = 0;
  double in_service = 0;  // requests · ms
};

struct NaiveReplica {
  std::deque<NaiveRequest> outside;
  std::vector<NaiveRequest> inside;
  bool working = false;
  double began = 0, ends = 0;
  std::vector<long>
      chunks;  // of the iteration at work, by place in `inside`; -1: a token is decoded
};

void naive_begin(const Deployment& d, NaiveReplica& replica, double now) {
  while (!replica.outside.empty() && std::ssize(replica.inside) < d.batch) {
    replica.inside.push_back(replica.outside.front());
    replica.outside.pop_front();
  }
  replica.working = !replica.inside.empty();
  if (!replica.working) return;
  long left = static_cast<long>(d.budget), decoding = 0, prefill = 0, read = 0;
  replica.chunks.assign(replica.inside.size(), 0);
  for (std::size_t i = 0; i < replica.inside.size(); ++i) {
    const auto& r = replica.inside[i];
    if (r.produced == 0) continue;
    replica.chunks[i] = -1;
    --left, ++decoding, read += r.prompt + r.produced;
  }
  for (std::size_t i = 0; i < replica.inside.size(); ++i) {
    const auto& r = replica.inside[i];
    if (r.produced > 0 || left <= 0) continue;
    const long chunk = std::min(left, r.prompt - r.prefilled);
    replica.chunks[i] = chunk;
    left -= chunk, prefill += chunk, read += r.prefilled + chunk;
  }
  const auto p = static_cast<double>(prefill) * d.step.beta_prefill_ms;
  double time = d.step.form == StepForm::max ? std::max(d.step.alpha_ms, p) : d.step.alpha_ms + p;
  time += d.step.beta_ms * static_cast<double>(decoding);
  time += d.step.gamma_ms * static_cast<double>(read);
  replica.began = now, replica.ends = now + time;
}

void naive_end(const Deployment& d, NaiveReplica& replica, const Window& w, NaiveResult& result) {
  const auto counts = [&](double t) { return w.from_ms <= t && t < w.until_ms; };
  const double time = replica.ends - replica.began;
  if (counts(replica.began)) result.in_service += time * static_cast<double>(replica.inside.size());
  for (std::size_t i = 0; i < replica.inside.size(); ++i) {
    auto& r = replica.inside[i];
    if (replica.chunks[i] == -1) {
      const bool is_first = d.only_decodes && ++r.made == 1;
      ++r.produced;
      if (counts(replica.began)) result.itl.push_back(is_first ? replica.ends - r.arrival : time);
      if (is_first && counts(r.arrival)) result.ttft.push_back(replica.ends - r.arrival);
      continue;
    }
    const bool had_its_turn = replica.chunks[i] > 0;
    r.prefilled += replica.chunks[i];
    if (!had_its_turn || r.prefilled < r.prompt) continue;
    r.produced = 1;
    if (counts(r.arrival))
      result.ttft.push_back(replica.ends - r.arrival + d.ttft_offset_ms +
                            d.ttft_per_token_ms * static_cast<double>(r.prompt));
  }
  std::erase_if(replica.inside, [&](const NaiveRequest& r) {
    const bool done = r.produced > 0 && r.produced >= r.output;
    if (done && counts(replica.ends)) ++result.completed;
    return done;
  });
}

std::size_t naive_route(const Deployment& d, const std::vector<NaiveReplica>& all, Rng& rng,
                        std::size_t& turn) {
  if (d.routing == Routing::random && all.size() > 1) return rng.below(all.size());
  std::size_t chosen = turn;
  const auto load = [&](std::size_t r) { return all[r].inside.size() + all[r].outside.size(); };
  if (d.routing == Routing::least_loaded)
    for (std::size_t i = 1; i < all.size(); ++i)
      if (const auto r = (turn + i) % all.size(); load(r) < load(chosen)) chosen = r;
  turn = (chosen + 1) % all.size();
  return chosen;
}

NaiveResult naive(const Deployment& d, const std::vector<Request>& requests, double unit,
                  const Window& window, std::uint64_t seed) {
  std::vector<NaiveReplica> all(static_cast<std::size_t>(d.replicas));
  NaiveResult result;
  Rng rng(seed_of(seed, Stream::routing));
  std::size_t turn = 0, next = 0;
  for (;;) {
    NaiveReplica* first = nullptr;
    for (auto& replica : all)
      if (replica.working && (first == nullptr || replica.ends < first->ends)) first = &replica;
    const double arrival = next < requests.size() ? requests[next].arrival * unit : INFINITY;
    if (first == nullptr && next == requests.size()) break;
    if (first != nullptr && first->ends < arrival) {
      naive_end(d, *first, window, result);
      naive_begin(d, *first, first->ends);
      continue;
    }
    NaiveReplica& replica = all[naive_route(d, all, rng, turn)];
    const Request& r = requests[next++];
    if (std::ssize(replica.inside) + std::ssize(replica.outside) >= d.batch + d.queue) {
      if (arrival >= window.from_ms && arrival < window.until_ms) ++result.lost;
      continue;
    }
    replica.outside.push_back({arrival, r.in_tokens, r.out_tokens});
    if (d.only_decodes) replica.outside.back().produced = 1;
    // An empty iteration, so that who comes at the same instant is in the first one, too.
    if (!replica.working) replica.working = true, replica.began = replica.ends = arrival;
  }
  std::sort(result.ttft.begin(), result.ttft.end());
  std::sort(result.itl.begin(), result.itl.end());
  return result;
}

/// Of sorted values.
double naive_quantile(const std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// ---- Settings -----------------------------------------------------------------------------------

const StepTime kSum{8.3, 0.036, 0.0000637, 0.036, StepForm::sum};
const StepTime kMax{12.7, 0.114, 0.0001046, 0.0905, StepForm::max};
const StepTime kSlowPrefill{16, 0.0764, 0.0000478, 0.25, StepForm::sum};

Lengths fixed(double mean) {
  return {Lengths::Kind::fixed, mean, 0, {}};
}
Lengths geometric(double mean) {
  return {Lengths::Kind::geometric, mean, 0, {}};
}
Lengths lognormal(double mean, double cv) {
  return {Lengths::Kind::lognormal, mean, cv, {}};
}

struct Setting {
  const char* name;
  Deployment deployment;
  Traffic traffic;
  double requests_per_s;
  int count = 600;
};

const Traffic kChat{lognormal(700, 1.2), geometric(120), 1};
const Traffic kSteady{fixed(512), fixed(64), 1};
const Traffic kLong{lognormal(9000, 0.8), geometric(30), 1};
const Traffic kBursts{geometric(300), lognormal(90, 1.5), 3};
const Traffic kPrompts{lognormal(400, 0.5), fixed(0), 1};
Lengths histogram(std::vector<LengthHistogram::Bin> bins) {
  const auto made = *LengthHistogram::of(std::move(bins));
  return {Lengths::Kind::histogram, made.mean(), 0, made};
}
const Traffic kMixed{histogram({{10, 5}, {900, 2}, {30'000, 0.1}}),
                     histogram({{1, 1}, {2, 1}, {200, 3}}), 1};
const Traffic kAnswers{lognormal(700, 1.2), histogram({{2, 1}, {90, 4}}), 1};
constexpr auto kTurn = Routing::round_robin;

const std::vector<Setting> kSettings{
    {"nearly idle", {kSum, 64}, kChat, 0.5},
    {"half", {kSum, 64}, kChat, 12},
    {"busy", {kSum, 64}, kChat, 22},
    {"overloaded", {kSum, 64}, kChat, 60},
    {"large batch", {kSum, 512}, kChat, 25},
    {"one at a time", {kSum, 1}, kChat, 0.7},
    {"two at a time", {kSum, 2}, kSteady, 2},
    {"fixed lengths", {kSum, 32}, kSteady, 25},
    {"fixed lengths, regular", {kSum, 32}, {fixed(512), fixed(64), 0}, 23.7},
    {"max form", {kMax, 64}, kChat, 8},
    {"max form, busy", {kMax, 128}, kSteady, 17},
    {"max form, long", {kMax, 128}, kLong, 0.9},
    {"slow prefill", {kSlowPrefill, 48}, kChat, 3},
    {"long prompts", {kSum, 32}, kLong, 2},
    {"long prompts, busy", {kSum, 32}, kLong, 2.9},
    {"small budget", {kSum, 64, kNoQueueLimit, 256}, kChat, 9},
    {"budget below the batch", {kSum, 64, kNoQueueLimit, 8}, kSteady, 8},
    {"queue limit", {kSum, 8, 4}, kChat, 9},
    {"no queue", {kSum, 16, 0}, kChat, 14},
    {"offset", {kMax, 64, 100, 8192, 7.5}, kChat, 8},
    {"bursts", {kSum, 64}, kBursts, 24},
    {"prompts alone", {kSum, 16}, kPrompts, 40},
    {"histograms", {kSum, 64, 50, 2048}, kMixed, 10},
    {"4 in turn", {kSum, 24, 40, 8192, 0, 4, kTurn}, kChat, 60},
    {"4 at random", {kSum, 24, 40, 8192, 0, 4, Routing::random}, kChat, 60},
    {"4 least loaded", {kSum, 24, 40, 8192, 0, 4, Routing::least_loaded}, kChat, 60},
    {"7 least loaded, idle", {kMax, 24, 40, 2048, 2, 7, Routing::least_loaded}, kBursts, 20},
    {"a transfer for each token",
     {.step = kSum, .batch = 16, .queue = 30, .ttft_per_token_ms = 0.01},
     kPrompts,
     40},
    {"decode", {.step = kSum, .batch = 64, .only_decodes = true}, kAnswers, 25},
    {"decode, busy", {.step = kMax, .batch = 48, .queue = 20, .only_decodes = true}, kAnswers, 60},
    {"decode, 3 least loaded",
     {.step = kSum,
      .batch = 4,
      .replicas = 3,
      .routing = Routing::least_loaded,
      .only_decodes = true},
     kAnswers,
     9},
    {"3 at random, long", {kSlowPrefill, 6, 2, 4096, 0, 3, Routing::random}, kLong, 0.8},
};

std::string printed(double value) {
  return fmt::format("{:.6g}", value);
}

TEST(Simulator, AgreesWithTokenByTokenToEachPrintedDigit) {
  for (const Setting& s : kSettings) {
    SCOPED_TRACE(s.name);
    ASSERT_TRUE(check(s.deployment) && check(s.traffic));
    const auto requests = draw_requests(s.traffic, static_cast<std::size_t>(s.count), 11);
    const double unit = 1000 / s.requests_per_s;
    const bool is_whole = (&s - kSettings.data()) % 2 == 0;
    const Window window = is_whole ? Window{} : steady_window(requests, unit, 0.2);
    const Outcome a = simulate(s.deployment, requests, unit, window, 5);
    const NaiveResult b = naive(s.deployment, requests, unit, window, 5);
    EXPECT_EQ(a.lost, b.lost);
    EXPECT_EQ(a.completed, b.completed);
    ASSERT_EQ(a.ttft_ms.size(), b.ttft.size());
    ASSERT_EQ(a.itl.tokens(), std::ssize(b.itl));
    EXPECT_EQ(printed(mean_of(a.ttft_ms)), printed(mean_of(b.ttft)));
    EXPECT_EQ(printed(a.itl.mean_ms()), printed(mean_of(b.itl)));
    EXPECT_EQ(printed(a.in_service * a.window_ms), printed(b.in_service));
    const auto ttft = quantiles(a.ttft_ms, kPercentileParts),
               itl = a.itl.quantiles_ms(kPercentileParts);
    for (std::size_t q = 0; q < kPercentileParts.size(); ++q) {
      EXPECT_EQ(printed(ttft[q]), printed(naive_quantile(b.ttft, kPercentileParts[q])))
          << kPercentileParts[q];
      EXPECT_EQ(printed(itl[q]), printed(naive_quantile(b.itl, kPercentileParts[q])))
          << kPercentileParts[q];
    }
  }
}

TEST(Simulator, AgreesWithTokenByTokenOnSmallNumbers) {
  // Whole numbers, so that arrivals fall on the ends of iterations and on one another.
  Rng rng(1);
  const auto up_to = [&](int most) {
    return static_cast<int>(rng.below(static_cast<unsigned>(most) + 1));
  };
  for (int round = 0; round < 3000; ++round) {
    Deployment d;
    d.step = {double(1 + up_to(2)), double(up_to(2)), double(up_to(1)), double(up_to(2)),
              up_to(1) == 0 ? StepForm::sum : StepForm::max};
    d.batch = 1 + up_to(4), d.queue = up_to(5), d.budget = 1 + up_to(12);
    d.replicas = 1 + up_to(2), d.routing = static_cast<Routing>(up_to(2));
    std::vector<Request> requests;
    double now = 0;
    for (int i = 0; i < 12; ++i) {
      now += up_to(4) * up_to(4);
      requests.push_back({now, 1 + up_to(9), up_to(7)});
    }
    const Window window{double(up_to(9)), double(20 + up_to(40))};
    const Outcome a = simulate(d, requests, 1, window, 3);
    const NaiveResult b = naive(d, requests, 1, window, 3);
    ASSERT_EQ(a.lost, b.lost) << round;
    ASSERT_EQ(a.completed, b.completed) << round;
    ASSERT_DOUBLE_EQ(a.in_service * a.window_ms, b.in_service) << round;
    auto ttft = a.ttft_ms;
    std::sort(ttft.begin(), ttft.end());
    ASSERT_EQ(ttft, b.ttft) << round;
    ASSERT_EQ(a.itl.tokens(), std::ssize(b.itl)) << round;
    ASSERT_DOUBLE_EQ(a.itl.mean_ms(), mean_of(b.itl)) << round;
    for (const double part : kPercentileParts)
      ASSERT_EQ(a.itl.quantiles_ms(std::array{part})[0], naive_quantile(b.itl, part)) << round;
  }
}

// ---- What is known ------------------------------------------------------------------------------

TEST(Simulator, OneRequestAloneTakesTheSumOfItsSteps) {
  const Deployment d{{10, 1, 0.5, 2, StepForm::sum}, 4, 0, 8, 3};
  const std::vector<Request> requests{{0, 20, 3}};
  const Outcome o = simulate(d, requests, 1, {}, 1);
  // Chunks of 8, 8 and 4 tokens read 8, 16 and 20; then 21 and 22 are read.
  const double prefill_ms = 3 * 10 + 2 * 20 + 0.5 * (8 + 16 + 20);
  EXPECT_EQ(o.ttft_ms, std::vector{prefill_ms + 3});
  EXPECT_EQ(o.itl.tokens(), 2);
  EXPECT_DOUBLE_EQ(o.itl.mean_ms(), 11 + 0.5 * 21.5);
  EXPECT_DOUBLE_EQ(o.window_ms, prefill_ms + 22 + 0.5 * 43);
  EXPECT_DOUBLE_EQ(o.in_service, 1);
}

TEST(Simulator, OneAtATimeWithoutTokensToDecodeIsTheQueueMD1) {
  const Deployment d{{10, 0, 0, 0, StepForm::sum}, 1};
  const auto requests = draw_requests({fixed(1), fixed(1), 1}, 400'000, 3);
  for (const double u : {0.3, 0.6, 0.8}) {
    const double unit = 10 / u;
    const Outcome o = simulate(d, requests, unit, steady_window(requests, unit, 0.1), 1);
    EXPECT_NEAR(mean_of(o.ttft_ms), 10 + 10 * u / (2 * (1 - u)), 0.02 * 30) << u;
    EXPECT_NEAR(o.utilisation(), u, 0.01);
    EXPECT_NEAR(o.throughput_per_min(), 60'000 / unit, 0.01 * 60'000 / unit);
  }
}

TEST(Simulator, WithoutAQueueLossIsErlangs) {
  // The time of a request is the same however many there are: 1 step of prefill and m − 1 others.
  // Steps are short against it, so that hardly anybody waits for one.
  const Deployment d{{1, 0, 0, 0, StepForm::sum}, 3, 0};
  const auto requests = draw_requests({fixed(1), geometric(1000), 1}, 200'000, 5);
  const double a = 2;  // Erlangs
  const double unit = 1000 / a;
  const Outcome o = simulate(d, requests, unit, steady_window(requests, unit, 0.1), 1);
  const double blocked = (a * a * a / 6) / (1 + a + a * a / 2 + a * a * a / 6);
  EXPECT_NEAR(o.lost_part(), blocked, 0.01 * 0.7);
}

TEST(Simulator, ReplicasComeAndGo) {
  // One at a time, 10 ms each, and one every 5 ms: a second replica is just enough.
  Deployment d{{10, 0, 0, 0, StepForm::sum}, 1};
  std::vector<Request> requests;
  for (int i = 0; i < 30; ++i) requests.push_back({5.0 * i, 1, 1});
  d.changes = {{50, 2}, {100, 1}};
  std::vector<double> ttft_ms;
  const Outcome o = simulate(d, requests, 1, {0, 150}, 1, &ttft_ms);
  ASSERT_EQ(ttft_ms.size(), 30U);
  EXPECT_DOUBLE_EQ(ttft_ms[9], 10 + 9 * 5);  // the queue of the first has grown by 5 ms each
  EXPECT_DOUBLE_EQ(ttft_ms[11], 10);         // the second takes every other one
  EXPECT_DOUBLE_EQ(ttft_ms[10], 10 + 10 * 5);
  EXPECT_DOUBLE_EQ(ttft_ms[18], ttft_ms[10]);  // and the queue of the first no longer grows
  EXPECT_GT(ttft_ms[29], ttft_ms[20]);         // until all go there again
  EXPECT_DOUBLE_EQ(o.slots, (50 + 2 * 50 + 50) / 150.0);
  Deployment same{{10, 0, 0, 0, StepForm::sum}, 1};
  same.changes = {{20, 1}};
  Deployment none = same;
  none.changes = {};
  EXPECT_EQ(simulate(same, requests, 1, {}, 1).ttft_ms, simulate(none, requests, 1, {}, 1).ttft_ms);
}

TEST(Simulator, RefusesWhatMakesNoSense) {
  const auto refusal = [](auto change) {
    Deployment d{kSum, 8};
    change(d);
    const auto status = check(d);
    return status ? std::string("none") : status.error().message;
  };
  EXPECT_EQ(refusal([](auto&) {}), "none");
  EXPECT_EQ(refusal([](auto& d) { d.batch = 0; }), "batch: expected 1 to 1000000, got 0");
  EXPECT_EQ(refusal([](auto& d) { d.step.gamma_ms = NAN; }), "gamma: expected at least 0, got nan");
  EXPECT_EQ(refusal([](auto& d) { d.step = {.beta_prefill_ms = 1}; }),
            "alpha, beta and gamma are all zero");
  EXPECT_EQ(refusal([](auto& d) { d.replicas = 0; }), "replicas: expected 1 to 100000, got 0");
  EXPECT_EQ(refusal([](auto& d) { d.changes = {{0, 0}}; }),
            "replicas of a change: expected 1 to 100000, got 0");
  EXPECT_EQ(refusal([](auto& d) { d.changes = {{5, 1}, {4, 2}}; }),
            "the time of a change: expected no time before the one before, got 4");
  EXPECT_EQ(refusal([](auto& d) { d.queue = -1; }), "queue: expected at least 0, got -1");
}

}  // namespace
}  // namespace berth::fleet
