// One replica as a queue: requests arrive at random, up to `batch` are served at the same time, up
// to `queue` wait, and a request that finds both full is lost. The number present is a birth-death
// chain whose service rate depends on how many are served: mu(k) = k / tau(k), tau(k) = f + g·k
// over ranges of k.
//
// The chain is here; reference_queue.h and calibrated_queue.h say what f and g are, and read a
// replica's figures from the chain. Times in ms, rates in requests a ms. Pure values: copy freely,
// any thread. Preconditions are checked by fleet's face, asserted here.
#pragma once

#include <vector>

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
  virtual ~Queue() = default;
  int batch() const { return batch_; }
  int queue() const { return queue_; }
  /// μ(B), requests a ms.
  double service_rate(int batch) const { return batch / step_ms(batch); }
  /// The replica at `rate` > 0, in requests a millisecond; sets `growth` too unless it is null.
  virtual Operation at(double rate, Growth* growth) const = 0;
  /// A first guess of the greatest rate: the targets are just met if no request waits. A target of
  /// 0 is none. Infinite: no rate is too great; 0: every rate is.
  virtual double unlimited_rate(double itl_ms, double ttft_ms) const = 0;

  /// The chain in equilibrium. Each growth is a derivative by ln λ.
  struct Present {
    double loss = 0, loss_growth = 0;              // P(N + Q)
    double in_service = 0, in_service_growth = 0;  // E min(k, N)
    double waiting = 0, waiting_growth = 0;        // E max(k - N, 0)
    double alone = 0, alone_growth = 0;            // P(0)
    double waits = 0, waits_growth = 0;            // P(N <= k < N + Q): an arrival has to wait
  };
  Present present_at(double rate) const;
  /// Probabilities of first, first + 1, … <= N present, N standing for more too; what is left out
  /// is negligible.
  struct Weights {
    int first = 0;
    std::vector<double> of;
  };
  Weights weights_at(double rate) const;

 protected:
  /// Batches that need equally many chunks of prefill: there τ(B) = fixed_ms + B·each_ms.
  struct Run {
    double chunks;
    double fixed_ms, each_ms;
    int last;    // batch
    int before;  // the last of the run before
  };

  Queue(int batch, int queue);
  /// After what run_at() needs is set.
  void set_full_step() { full_step_ms_ = step_ms(batch_); }
  virtual Run run_at(int batch) const = 0;
  double step_ms(int batch) const;  // τ(B)

 private:
  struct Sums;
  struct Waiting;
  int start_at(double rate) const;
  bool add_unlimited(double rate, Sums& sums) const;
  double tail(double fixed, double each, double p) const;
  void add_up(double rate, bool may_stop, int from, Sums& sums) const;
  void add_down(double rate, bool may_stop, int from, Sums& sums) const;
  Waiting waiting_at(double r, const Sums& sums) const;
  Present present(double r, const Sums& sums) const;

  int batch_, queue_;
  double full_step_ms_ = 0;  // τ(N)
};

}  // namespace berth::fleet
