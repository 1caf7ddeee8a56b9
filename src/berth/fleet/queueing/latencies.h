// How TTFT and ITL of a replica are distributed by the calibrated model: over requests, and over
// the tokens after each request's first. Mixtures over groups of the number present
// (docs/explanation/fleet-model.md has the formulas and their errors).
//
// Pure; any thread. Times in ms.
#pragma once

#include <vector>

#include "berth/fleet/queueing/calibrated_queue.h"

namespace berth::fleet {

class Latencies {
 public:
  /// At `rate` > 0, in requests a ms.
  Latencies(const CalibratedQueue& queue, double rate);

  /// The part of the requests whose first token takes longer.
  double ttft_above(double ms) const;
  /// The part of the tokens that come later than this after the one before; 0 where there is none.
  double itl_above(double ms) const;
  /// To 0.1 %.
  Percentiles percentiles() const;

 private:
  /// A shift and a gamma distribution, and for those who wait for a place an exponential one.
  struct Prefills {
    double weight, shift_ms, mean_ms, variance, wait_ms;
  };
  /// A step without prompts, normally distributed, to which a negative binomial number of prompts
  /// comes, each of a gamma distribution.
  struct Steps {
    double weight, step_ms, step_variance, prompts, prompt_ms, prompt_variance, dispersion;
  };
  void add_prefill(const GatedPrefill<double>& prefill, double weight, double wait_ms,
                   double served);

  std::vector<Prefills> prefills_;
  std::vector<Steps> steps_;
  double offset_ms_ = 0;
  double prompt_variation_ = 0, arrival_variation_ = 1, step_variance_ = 0;
  int most_prompts_ = 1;   // a step takes
  double first_gaps_ = 0;  // the part of the tokens that prefills_ are the gaps before
};

}  // namespace berth::fleet
