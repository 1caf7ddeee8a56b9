// One replica as a queue: requests of n input and m output tokens arrive at random, up to `batch`
// are served at the same time, up to `queue` wait, and a request that finds both full is lost. A
// birth-death chain over the number present, whose service rate depends on how many are served.
//
// Source of the formulas: the reference model (docs/fleet.md). Times in ms, rates in requests a ms.
// Pure values: copy freely, any thread. Preconditions are checked by fleet's face, asserted here.
#pragma once

#include <cstdint>

namespace berth::fleet {

inline constexpr double kBatchTokens = 8192;       // M: tokens that one batch step takes
inline constexpr int kMostBatch = 1'000'000;       // N and Q above are cut to this
inline constexpr double kMostTokens = 10'000'000;  // n and m

/// The state of a replica under a load, in equilibrium.
struct Operation {
  double throughput = 0;   // requests a ms that are served
  double loss = 0;         // fraction of the arrivals that is rejected
  double in_service = 0;   // requests on average: X
  double response_ms = 0;  // from arrival to the last token
  double service_ms = 0;   // of that, in service
  double wait_ms = 0;      // of that, before
  double prefill_ms = 0;
  double itl_ms = 0;  // between two tokens
  double ttft_ms = 0;
  double utilisation = 0;  // X / N
};

/// The derivatives of the figures by the logarithm of the rate (d / d ln λ) while prefill takes the
/// same number of chunks.
struct Growth {
  double throughput = 0, loss = 0, wait_ms = 0, itl_ms = 0, ttft_ms = 0;
};

class Queue {
 public:
  struct Parameters {
    double in_tokens = 0, out_tokens = 0;            // n, m; not both 0
    double alpha_ms = 0, beta_ms = 0, gamma_ms = 0;  // not all 0
    int batch = 1, queue = 0;                        // N >= 1, Q >= 0
  };
  explicit Queue(const Parameters& parameters);

  const Parameters& parameters() const { return parameters_; }
  /// c(B): the least number of steps in which a batch of B takes in one more prompt each, m apart.
  double chunks(double batch) const;
  /// μ(B), requests a ms.
  double service_rate(int batch) const { return batch / step_ms(batch); }
  /// The greatest batch that needs fewer chunks than `batch` does; 0: none.
  int last_batch_before(int batch) const;
  /// The replica at `rate` > 0, in requests a millisecond; sets `growth` too unless it is null.
  Operation at(double rate, Growth* growth = nullptr) const;
  /// A first guess of the greatest rate: the targets are just met if no request waits or takes more
  /// than one chunk of prefill. A target of 0 is none. Infinite: no rate is too great; 0: every
  /// rate is.
  double unlimited_rate(double itl_ms, double ttft_ms) const;

 private:
  struct Run;
  struct Sums;
  struct Waiting;
  double batch_of(double chunks) const;  // B_i: the greatest batch that i chunks serve
  double step_ms(int batch) const;       // τ(B)
  Run run_at(int batch) const;
  bool add_unlimited(double rate, Sums& sums) const;
  double tail(double fixed, double each, double p) const;
  void add_up(double rate, bool may_stop, int from, Sums& sums) const;
  void add_down(double rate, bool may_stop, int from, Sums& sums) const;
  Waiting waiting_at(double r, const Sums& sums) const;
  Operation operation(double rate, double r, const Sums& sums, Growth* growth) const;

  Parameters parameters_;
  double decode_ms_ = 0;     // w_d
  double unchunked_ = 0;     // B_1
  double prompt_ms_ = 0;     // w_p of one chunk
  double full_step_ms_ = 0;  // τ(N)
};

}  // namespace berth::fleet
