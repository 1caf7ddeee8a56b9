// Performance parameters of models, fitted to what benchmark tools or live servers measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/engine/fleets/fleet.h"
#include "berth/engine/fleets/vllm_metrics.h"
#include "berth/engine/runs/submission.h"
#include "berth/fleet/fit/fit.h"

namespace berth::engine {

struct FitRequest {
  std::vector<std::string> files, held_out;
  std::string llm, accelerator;  ///< Their names, or the ones to choose; "": as measured.
  std::string write;             ///< The fleet document that receives the parameters; "": none.
  MetricsWanted metrics;         ///< Instead of files, if it has a URL.
  bool all = false;              ///< Keep points with errors, few requests or cached prompts.
};

/// A fit of one model on one accelerator, and what was held out of it.
struct FleetFit {
  std::string model, accelerator;
  std::size_t iterations = 0, points = 0;
  fleet::Fit fit;
  std::optional<fleet::Held> held;
};
struct FleetFits {
  std::vector<FleetFit> fits;
  bool is_checked = false;  ///< The text compares each point with the fit.
};

/// `report` receives one line about the written document. Errors: as of files and of
/// read_prometheus(); usage, with the option; the first error of fleet::fit() if nothing can be
/// fitted.
Result<FleetFits> fit_performance(os::Env& env, const FitRequest& request, const FleetNotes& notes,
                                  const Note& report);

}  // namespace berth::engine
