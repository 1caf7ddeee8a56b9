// The figures of a replica by the calibrated model: a closed form for lengths and gaps between
// arrivals that vary (docs/fleet.md has its formulas, their sources and their errors).
//
// A step of the replica takes alpha + beta·(requests that decode) + betaPrefill·(tokens of prompts)
// + gamma·(tokens that these attend to); of the form `max`, max(alpha, betaPrefill·(tokens of
// prompts)) instead of the sum of the two. A request that enters has its prompt taken in by the
// next step, up to M tokens of all prompts a step, and one more token by each step after that.
#pragma once

#include "berth/fleet/queue.h"
#include "berth/fleet/sizing.h"

namespace berth::fleet {

class CalibratedQueue final : public Queue {
 public:
  /// Of `demand` the lengths, the arrivals and the queue.
  CalibratedQueue(const Demand& demand, const Performance& performance, int batch);

  Operation at(double rate, Growth* growth = nullptr) const override;
  double unlimited_rate(double itl_ms, double ttft_ms) const override;
  /// The greatest batch whose steps have at most M tokens on average: beyond it the service rate
  /// stays the same.
  int largest_of_use() const { return within_tokens_; }

 private:
  Run run_at(int batch) const override;

  double alpha_ms_ = 0, offset_ms_ = 0;
  double decodes_ = 0;            // steps of a request after its first token: m − 1
  double chunks_ = 1;             // steps of its prefill on average: c
  double steps_ = 1;              // I = c + m − 1
  double work_ms_ = 0;            // W: what a request adds to the steps that it is in
  double prompt_ms_ = 0;          // of that, for its prompt
  double others_ms_ = 0;          // what one other request present adds to a step
  double prompt_variation_ = 0;   // (sd / mean)² of the work of prompts
  double service_variation_ = 0;  // the same of the number of steps
  double arrival_variation_ = 1;  // the same of the time between arrivals
  int within_tokens_ = 1;
};

}  // namespace berth::fleet
