// What is believed of one server's load and performance, from what was measured of it again and
// again: what to plan for, how far beta and gamma have drifted, how many requests a replica really
// takes at once. docs/explanation/fleet-days.md, "The control loop".
//
// Pure: time is handed in. A value; one thread at a time.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

struct AutoscalerOptions;
struct Demand;

/// What was measured of one server over the last while; nullopt: nobody tells. Rates are requests a
/// minute, over all replicas.
struct Live {
  std::optional<double> arrivals_per_min, served_per_min;
  std::optional<double> in_tokens, out_tokens;  // of a request, on average
  std::optional<double> ttft_ms, itl_ms;        // on average
  std::optional<double> running, waiting;       // requests, on average
  std::optional<double> replicas;               // that report
  std::string trouble;                          // why there are no figures
};
/// "": the figures may be believed; else why not: there is none, or one is absurd.
std::string doubts_of(const Live& live);

class LoadEstimate {
 public:
  LoadEstimate() = default;
  /// `known`: the document's load, whose variations and histograms stay.
  explicit LoadEstimate(const Load& known) : load_(known) {}

  /// Takes in what was measured. "": it is believed; else why not, and the load stays as it was.
  std::string take(double now_s, const Live& live, const AutoscalerOptions& options);
  /// Learns of the performance what was taken in last tells. `batch`: that was planned;
  /// `is_steady`: all replicas report, and have for as long as one takes to start.
  void learn(double now_s, const Live& live, const Demand& demand, const Performance& performance,
             int batch, bool is_steady, const AutoscalerOptions& options);

  /// The last one that was believed, its tokens smoothed.
  const Load& load() const { return load_; }
  /// The load when what is decided now serves: one that grows is taken to go on growing, and what
  /// waits has to be served too.
  double forecast_per_min(double now_s, const Live& live, const AutoscalerOptions& options) const;
  /// What beta and gamma have turned out to be, as a multiple.
  double drift(const Performance& performance, const AutoscalerOptions& options) const;
  /// Requests that a replica takes at once where more wait; 0: not known.
  int full_at() const { return full_at_; }

 private:
  void learn_drift(const Live& live, const Demand& demand, const Performance& performance,
                   int batch);
  void learn_batch(double now_s, const Live& live, int batch, bool is_steady,
                   const AutoscalerOptions& options);

  Load load_;
  std::deque<std::pair<double, double>> rates_;       // when, what: that were believed
  std::optional<std::pair<double, double>> doubted_;  // a rate that was not
  double drift_product_ = 0, drift_square_ = 0;       // of the least squares for the drift
  int full_at_ = 0;
  int waiting_for_ = 0;  // times in a row that some waited
  double waited_s_ = 0;  // when some waited last
};

}  // namespace berth::fleet
