// From measurements to observations, which are linear in the parameters.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "berth/fleet/fit/fit.h"

namespace berth::fleet {

/// Which points are worth what.
struct PointUse {
  bool used = true;        // false: refused
  bool cached = false;     // prompts cost nothing: prefill and first tokens are left out
  bool saturated = false;  // the first token waits for others: first tokens are left out
};
/// Judges each point; notes say what is left out, and why. `prompt_ms` is what a token of a prompt
/// is known to take; 0: not known.
std::vector<PointUse> judge_points(const Measured& measured, bool all, double prompt_ms,
                                   std::vector<std::string>& notes);

/// A load in equilibrium, and the mean between two tokens under it.
struct MeanLoad {
  double rate_per_ms = 0;
  double max_concurrency = 0;  // of a closed loop; 0: requests arrive at random
  double in_tokens = 0, in_square = 0, out_tokens = 0, out_square = 0;
  double itl_ms = 0;
};
MeanLoad load_of(const OperatingPoint& point);
/// The means between two tokens and to the first one as sums of iterations; of these the first is
/// the mean over tokens. `parameters` tell how much iterations vary.
struct MeanObservations {
  Observation itl, ttft;
};
MeanObservations mean_observations(const MeanLoad& load, const FitParameters& parameters);
/// The mean times that the parameters mean for the load: itl_ms of the load is not looked at, and
/// of a closed loop not the rate. 0, 0: the load is more than the server can take.
struct MeanTimes {
  double itl_ms = 0, ttft_ms = 0;
};
MeanTimes mean_times(MeanLoad load, const FitParameters& parameters);

/// Iterations, or means of requests, rebuilt from a timeline; at most `most` of each phase.
std::vector<Observation> timeline_observations(const OperatingPoint& point, std::size_t most);

/// All observations of the points that are used.
std::vector<Observation> observations(const Measured& measured, std::span<const PointUse> use,
                                      const FitParameters& parameters);

}  // namespace berth::fleet
