#include "berth/fleet/queueing/calibrated_queue.h"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "berth/base/result.h"

namespace berth::fleet {
namespace {

constexpr double kLeastWork_ms = 1e-9;  // nothing takes no time
constexpr int kFewChunks = 20;          // so many are counted one by one

/// A figure and its derivative by ln λ.
struct Dual {
  double is = 0, grows = 0;
  Dual() = default;
  Dual(double constant) : is(constant) {}
  Dual(double value, double growth) : is(value), grows(growth) {}
};
Dual operator+(Dual a, Dual b) {
  return {a.is + b.is, a.grows + b.grows};
}
Dual operator-(Dual a, Dual b) {
  return {a.is - b.is, a.grows - b.grows};
}
Dual operator*(Dual a, Dual b) {
  return {a.is * b.is, a.grows * b.is + a.is * b.grows};
}
Dual operator/(Dual a, Dual b) {
  const double ratio = a.is / b.is;
  return {ratio, (a.grows - ratio * b.grows) / b.is};
}
bool operator<(Dual a, double b) {
  return a.is < b;
}
Dual exp(Dual a) {
  const double value = std::exp(a.is);
  return {value, a.grows * value};
}
Dual at_most(Dual a, double most) {
  return a < most ? a : Dual(most);
}
Dual at_least(Dual a, double least) {
  return a.is > least ? a : Dual(least);
}

/// How a length or a work varies about its mean: as a histogram has it, else as a gamma
/// distribution with the coefficient of variation, which may be 0.
struct Spread {
  double cv = 0;
  const LengthHistogram* histogram = nullptr;

  Spread(double gamma_cv) : cv(gamma_cv) {}
  Spread(double load_cv, const LengthHistogram& of)
      : cv(of ? of.cv() : load_cv), histogram(of ? &of : nullptr) {}
  double variation() const { return cv * cv; }
  /// E x³ / (mean · E x²)
  double third_by_square() const {
    return histogram != nullptr ? histogram->third() / (1 + variation()) : 1 + 2 * variation();
  }
};

/// P(x > least), and E x and E x² of these.
struct Above {
  double part = 0, mean = 0, square = 0;
};
Above above(double mean, const Spread& spread, double least) {
  const double cv = spread.cv, square = mean * mean * (1 + cv * cv);
  if (mean <= 0) return {};
  if (spread.histogram != nullptr) {
    Above sum;
    spread.histogram->each(mean, [&](double x, double probability) {
      if (x <= least) return;
      sum.part += probability, sum.mean += probability * x, sum.square += probability * x * x;
    });
    return sum;
  }
  if (least <= 0) return {1, mean, square};
  if (cv == 0) return mean > least ? Above{1, mean, square} : Above{};
  const double shape = 1 / (cv * cv), x = least * shape / mean;
  return {boost::math::gamma_q(shape, x), mean * boost::math::gamma_q(shape + 1, x),
          square * boost::math::gamma_q(shape + 2, x)};
}

/// E ⌈n / M⌉, and the same weighted by n.
struct Chunks {
  double count = 1, by_token = 1;
};
Chunks chunks_of(double mean, const Spread& spread) {
  Chunks chunks;
  for (int i = 1;; ++i) {
    const double length = i * kBatchTokens;
    const Above more = above(mean, spread, length);
    if (more.mean <= 1e-6 * mean) return chunks;
    if (i == kFewChunks) {  // the rest of both sums as integrals
      chunks.count += more.mean / kBatchTokens - i * more.part + 0.5 * more.part;
      chunks.by_token += (more.square / kBatchTokens - i * more.mean + 0.5 * more.mean) / mean;
      return chunks;
    }
    chunks.count += more.part;
    chunks.by_token += more.mean / mean;
  }
}

/// E max(0, Σ − hidden) for a sum of a Poisson number of works, by the work: what remains of a
/// prompt's work where a step hides so much of it. Sums of several are gamma distributed.
double unhidden(double work_ms, const Spread& spread, double hidden_ms, double works_a_step) {
  constexpr double kMany = 50;  // they hardly ever hide behind the step
  if (works_a_step > kMany) return std::max(0.0, work_ms - hidden_ms / works_a_step);
  double probability = std::exp(-works_a_step), sum_ms = 0, left = 1 - probability;
  for (int i = 1; left > 1e-6; ++i) {
    probability *= works_a_step / i;
    left -= probability;
    const Above more =
        above(i * work_ms, i == 1 ? spread : Spread(spread.cv / std::sqrt(i)), hidden_ms);
    sum_ms += probability * (more.mean - hidden_ms * more.part);
  }
  return sum_ms / works_a_step;
}

/// How much longer a wait is than one for servers whose service is exponential and whose arrivals
/// are Poisson: Cosmetatos' approximation where service varies less, (1 + variation) / 2 where it
/// varies more; and of either the part that Allen and Cunneen's approximation gives to arrivals.
Dual wait_factor(double service_variation, double arrival_variation, double servers, Dual load) {
  const double by_arrivals = (arrival_variation + service_variation) / (1 + service_variation);
  if (service_variation >= 1) return by_arrivals * (1 + service_variation) / 2;
  const double slope = (servers - 1) * (std::sqrt(4 + 5 * servers) - 2) / (16 * servers);
  const Dual u = at_most(load, 1);
  const Dual fixed = at_most(0.5 * (1 + (1 - u) * slope / u), 1);
  return by_arrivals * (service_variation + (1 - service_variation) * fixed);
}

}  // namespace

CalibratedQueue::CalibratedQueue(const Demand& demand, const Performance& p, int batch_size)
    : Queue(batch_size, demand.max_queue) {
  const double n = demand.in_tokens;
  const double m = demand.role == Role::prefill ? 1 : demand.out_tokens;
  BERTH_ASSERT(n >= 0 && m >= 0 && n + m > 0);
  BERTH_ASSERT(p.alpha_ms >= 0 && p.beta_ms >= 0 && p.gamma_ms >= 0);
  const Spread in(demand.in_cv, demand.in_histogram), out(demand.out_cv, demand.out_histogram);
  const double in_variation = in.variation();
  const double out_variation = demand.role == Role::prefill ? 0 : out.variation();
  const double square = m * m * (1 + out_variation);  // E m²
  const Chunks chunks = chunks_of(n, in);
  StepWork& w = work_;
  w.alpha_ms = p.alpha_ms;
  w.offset_ms = p.ttft_offset_ms;
  w.only_prefills = demand.role == Role::prefill;
  if (demand.role == Role::prefill && p.transfer)
    w.offset_ms += p.transfer->fixed_ms + p.transfer->per_token_ms * n;
  w.decodes = std::max(0.0, m - 1);
  w.chunks = chunks.count;
  w.chunk_tokens = n / w.chunks;
  w.steps = w.chunks + w.decodes;
  w.within_tokens =
      static_cast<int>(std::clamp(kBatchTokens * w.steps / (n + w.decodes), 1.0, 1e6));
  w.prompt_variation = in_variation;
  w.prompt_ms = p.prefill_ms() * n;
  const double chunk_ms = w.prompt_ms / w.chunks;
  if (p.form == StepForm::max && w.only_prefills) {
    // No step is without a prompt: of alpha there remains what one chunk does not cover.
    const Above one = above(chunk_ms, in, w.alpha_ms);
    w.alpha_ms = std::max(0.0, w.alpha_ms * (1 - one.part) - (chunk_ms - one.mean));
  } else if (p.form == StepForm::max && n > 0) {
    w.prompt_ms = w.chunks * unhidden(chunk_ms, in, w.alpha_ms,
                                      w.chunks * std::min(batch(), w.within_tokens) / w.steps);
    // Of one prompt, what is not hidden varies more than its length.
    const Above one = above(chunk_ms, in, w.alpha_ms);
    const double left_ms = one.mean - w.alpha_ms * one.part;
    const double square_ms =
        one.square - 2 * w.alpha_ms * one.mean + w.alpha_ms * w.alpha_ms * one.part;
    if (left_ms > 1e-4 * chunk_ms)
      w.prompt_variation = std::max(0.0, square_ms / (left_ms * left_ms) - 1);
  }
  w.prompt_ms += p.gamma_ms * n * (chunks.by_token + 1) / 2;
  if (demand.role == Role::decode) give_up_prompts();
  w.request_ms = w.prompt_ms + p.beta_ms * w.decodes +
                 p.gamma_ms * (n * w.decodes + std::max(0.0, (square - m) / 2));
  if (w.alpha_ms == 0) w.request_ms = std::max(w.request_ms, kLeastWork_ms);
  if (w.decodes > 0) {
    // Met at a random step, an answer has E m² / 2m tokens so far, and E m³ / 3m is their square's
    // mean.
    const double so_far = square / (2 * m), decoding = w.decodes / w.steps;
    const double so_far_square = square * out.third_by_square() / 3;
    const double other_ms = p.beta_ms + p.gamma_ms * (n + so_far);
    const double context_variance = n * n * in_variation + so_far_square - so_far * so_far;
    w.other_ms = other_ms * decoding;
    w.other_ms_square = p.gamma_ms * p.gamma_ms * context_variance * decoding +
                        other_ms * other_ms * decoding * (1 - decoding);
  }
  w.service_variation = (square - m * m) / (w.steps * w.steps);
  w.arrival_variation = demand.arrival_cv * demand.arrival_cv;
  set_full_step();
}

/// Prompts come prefilled.
void CalibratedQueue::give_up_prompts() {
  StepWork& w = work_;
  BERTH_ASSERT(w.decodes > 0);
  w.only_decodes = true;
  w.offset_ms = w.prompt_ms = w.prompt_variation = w.chunk_tokens = 0;
  w.chunks = 1;
  w.steps = w.decodes;
  w.within_tokens = static_cast<int>(kBatchTokens);
}

/// Where steps are full of tokens, a larger batch only makes its requests wait for one another.
Queue::Run CalibratedQueue::run_at(int batch_size) const {
  const StepWork& w = work_;
  const int last = std::min(w.within_tokens, batch());
  if (batch_size <= last) return {1, w.steps * w.alpha_ms, w.request_ms, last, 0};
  return {2, 0, w.request_ms + w.steps * w.alpha_ms / w.within_tokens, batch(), last};
}

double CalibratedQueue::unlimited_rate(double itl_ms, double ttft_ms) const {
  const StepWork& w = work_;
  const double each_ms = w.request_ms / w.steps;  // of a step, for one more request
  const auto present = [&](double target_ms, double step_ms) {
    return target_ms == 0 || each_ms == 0 ? HUGE_VAL : (step_ms - w.alpha_ms) / each_ms;
  };
  const double x = std::min(present(itl_ms, itl_ms),
                            present(ttft_ms, (ttft_ms - w.offset_ms - w.prompt_ms) / 1.5));
  if (x == HUGE_VAL) return x;
  return x > 0 ? x / (w.steps * w.alpha_ms + x * w.request_ms) : 0;
}

Operation CalibratedQueue::at(double rate, Growth* growth) const {
  const StepWork& w = work_;
  const Present present = present_at(rate);
  const double servers = batch();
  const Dual lambda(rate, rate), loss(present.loss, present.loss_growth);
  const Dual in_service(present.in_service, present.in_service_growth);
  Dual alone(present.alone, present.alone_growth);
  const Dual waits(present.waits, present.waits_growth);
  const Dual served = lambda * (1 - loss);
  const Dual wait_ms = Dual(present.waiting, present.waiting_growth) / served *
                       wait_factor(w.service_variation, w.arrival_variation, servers,
                                   lambda / service_rate(batch()));
  const Dual service_ms = in_service / served;

  const auto prefill_ms = [&](Dual others) {
    return GatedPrefill<Dual>(w, others, served).mean_ms();
  };
  if (w.only_prefills)
    alone = at_least((1 - loss) * (1 - GatedPrefill<Dual>(w, 0, served).busy) - waits, 0);
  const Dual some = 1 - loss - alone - waits;  // others, and a free place
  Dual prefill = alone * (w.prompt_ms + w.chunks * w.alpha_ms);
  if (some.is > 1e-9)
    prefill = prefill + some * prefill_ms((in_service - servers * (waits + loss)) / some);
  if (waits.is > 0) prefill = prefill + waits * prefill_ms(servers - 1);
  prefill = prefill / (1 - loss);

  // What a request is in service for, less its own prompt's work, is spread over its steps.
  Dual itl_ms =
      w.decodes > 0 ? at_least((service_ms - w.prompt_ms) / w.steps, w.alpha_ms) : Dual(0);
  const Dual ttft_ms = wait_ms + prefill + w.offset_ms;
  // The first gap has the wait in it, and the rest of the step that an arrival meets.
  if (w.only_decodes) itl_ms = itl_ms + (ttft_ms - itl_ms) / w.decodes;
  Operation o;
  o.throughput = served.is;
  o.loss = loss.is;
  o.in_service = in_service.is;
  o.response_ms = wait_ms.is + service_ms.is + w.offset_ms;
  o.service_ms = service_ms.is;
  o.wait_ms = wait_ms.is;
  o.prefill_ms = prefill.is;
  o.itl_ms = itl_ms.is;
  o.ttft_ms = ttft_ms.is;
  o.utilisation = in_service.is / servers;
  if (growth != nullptr)
    *growth = {served.grows, loss.grows, wait_ms.grows, itl_ms.grows, ttft_ms.grows};
  return o;
}

}  // namespace berth::fleet
