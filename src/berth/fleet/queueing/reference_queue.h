// The figures of a replica by the reference model (docs/explanation/fleet-model.md has its formulas
// and source): all requests have n input and m output tokens.
#pragma once

#include "berth/fleet/queueing/queue.h"

namespace berth::fleet {

class ReferenceQueue final : public Queue {
 public:
  struct Parameters {
    double in_tokens = 0, out_tokens = 0;            // n, m; not both 0
    double alpha_ms = 0, beta_ms = 0, gamma_ms = 0;  // not all 0
    int batch = 1, queue = 0;                        // N >= 1, Q >= 0
  };
  explicit ReferenceQueue(const Parameters& parameters);

  const Parameters& parameters() const { return parameters_; }
  /// c(B): the least number of steps in which a batch of B takes in one more prompt each, m apart.
  double chunks(double batch) const;
  Operation at(double rate, Growth* growth = nullptr) const override;
  /// Where prefill takes one chunk.
  double unlimited_rate(double itl_ms, double ttft_ms) const override;

 private:
  double batch_of(double chunks) const;  // B_i: the greatest batch that i chunks serve
  Run run_at(int batch) const override;

  Parameters parameters_;
  double decode_ms_ = 0;  // w_d
  double unchunked_ = 0;  // B_1
  double prompt_ms_ = 0;  // w_p of one chunk
};

}  // namespace berth::fleet
