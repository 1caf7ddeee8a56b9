// berth plan --start: its options, and what it prints.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/options.h"
#include "berth/engine/plan_start.h"

namespace berth::cli {

struct StartChoices {
  bool wanted = false;
  std::vector<std::string> clusters;  // the first one is preferred; empty: this machine

  void add_to(Options& options);
  /// Errors: usage, if --on is given without --start.
  Status check() const;
};

/// A line for each run.
std::string started_text(const std::vector<engine::StartedRun>& started);
/// {"version":1,"plan":PLAN,"started":[{"server","accelerator","run","replicas","accelerators",
/// "ports":[…]}]}, with what fleet::plan_json() says as PLAN.
std::string started_json(const std::vector<engine::StartedRun>& started, const std::string& plan);

}  // namespace berth::cli
