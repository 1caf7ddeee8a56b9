// The figures of a replica by the calibrated model: a closed form for lengths and gaps between
// arrivals that vary (docs/explanation/fleet-model.md has its formulas, their sources and their
// errors).
//
// A step of the replica takes alpha + beta·(requests that decode) + betaPrefill·(tokens of prompts)
// + gamma·(tokens that these attend to); of the form `max`, max(alpha, betaPrefill·(tokens of
// prompts)) instead of the sum of the two. A request that enters has its prompt taken in by the
// next step, up to M tokens of all prompts a step, and one more token by each step after that. Of a
// pool that only prefills, an answer is its first token; of one that only decodes, prompts take no
// steps.
#pragma once

#include <cmath>

#include "berth/fleet/queueing/queue.h"
#include "berth/fleet/queueing/sizing.h"

namespace berth::fleet {

/// What the steps of a replica take, for one kind of requests. Variations are (sd / mean)².
struct StepWork {
  double alpha_ms = 0, offset_ms = 0;
  double decodes = 0;            // steps of a request after its first token: m − 1
  double chunks = 1;             // steps of its prefill on average: c
  double steps = 1;              // I = c + m − 1
  double request_ms = 0;         // W: what a request adds to the steps that it is in
  double prompt_ms = 0;          // of that, for its prompt
  double other_ms = 0;           // what one other request present adds to a step
  double other_ms_square = 0;    // of that, the variance
  double prompt_variation = 0;   // of the work of prompts
  double service_variation = 0;  // of the number of steps
  double arrival_variation = 1;  // of the time between arrivals
  double chunk_tokens = 0;       // of a prompt in one step
  bool only_prefills = false;    // steps have prompts or there are none
  bool only_decodes = false;     // TTFT is the gap before the first token that it makes
  int within_tokens = 1;         // the greatest batch whose steps have at most M tokens
};

/// How a prompt is taken in with others present, at a rate of served requests a ms
/// (docs/explanation/fleet-model.md): a gated queue, whose steps are longer by the prompts that
/// came during the one before (Takagi, Analysis of Polling Systems, 1986). Where arrivals come in
/// bursts, the variance of their number takes the place of the Poisson one's.
template <class Real>
struct GatedPrefill {
  static constexpr double kMostPart = 0.95;  // so much is taken for more: at 1 there is no end

  Real step_ms;    // A: without prompts
  Real prompt_ms;  // s: the work of a prompt, and the steps of its chunks but one
  Real part;       // r: of the time, for prompts
  Real mean_step_ms;
  Real excess_ms;  // variance of steps / mean of steps
  Real seen_ms;    // R: the mean step that an arrival sees
  Real busy = 1;   // the part of the time in which there are steps

  GatedPrefill(const StepWork& work, Real others, Real served)
      : step_ms(work.alpha_ms + work.other_ms * others),
        prompt_ms(work.prompt_ms + (work.chunks - 1) * step_ms),
        part(served * prompt_ms) {
    if (!(part < kMostPart)) part = kMostPart;
    mean_step_ms = step_ms / (1 - part);
    excess_ms = served * prompt_ms * prompt_ms * (work.arrival_variation + work.prompt_variation) /
                (1 - part * part);
    if (work.only_prefills) pause_when_idle(work, served);
    seen_ms = mean_step_ms + excess_ms;
  }

  /// There is no step without a prompt: of the prompts that come during a step, b − P(none), the
  /// next has b on average, as after an idle time it has one.
  void pause_when_idle(const StepWork& work, Real served) {
    using std::exp;
    Real prompts = 1, none = 0;
    for (int i = 0; i < 8; ++i) {  // Newton's steps towards b, from below
      none = exp(-1 * (served * step_ms + part * prompts));
      const Real beyond = served * step_ms + part * prompts + none - prompts;
      prompts = prompts + beyond / (1 - part + part * none);
    }
    mean_step_ms = step_ms + prompts * prompt_ms;
    busy = served * mean_step_ms / prompts;
    const Real square = prompt_ms * prompt_ms;
    const Real step_square = (step_ms * step_ms + 2 * step_ms * prompts * prompt_ms +
                              square * (prompts * work.prompt_variation +
                                        served * mean_step_ms * work.arrival_variation + none)) /
                             (1 - part * part);
    excess_ms = step_square / mean_step_ms - mean_step_ms;
  }
  /// From entering to the first token, where an arrival meets a step.
  Real mean_ms() const { return step_ms + prompt_ms + (0.5 + part) * seen_ms; }
};

class CalibratedQueue final : public Queue {
 public:
  /// Of `demand` the lengths, the arrivals and the queue.
  CalibratedQueue(const Demand& demand, const Performance& performance, int batch);

  const StepWork& work() const { return work_; }
  Operation at(double rate, Growth* growth = nullptr) const override;
  double unlimited_rate(double itl_ms, double ttft_ms) const override;

 private:
  Run run_at(int batch) const override;
  void give_up_prompts();

  StepWork work_;
};

}  // namespace berth::fleet
