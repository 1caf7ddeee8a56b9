// Options of berth run and berth check for flows: parameters, targets, and steps that run although
// their tasks are cached.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/options.h"
#include "berth/flow/flow.h"
#include "berth/os/env.h"

namespace berth::cli {

struct FlowChoices {
  std::vector<std::string> set;          // "lr=0.1", "samples=[A, B]"
  std::string params;                    // a file of values
  std::vector<std::string> targets;      // "map", "map/A"
  std::vector<std::string> force;        // steps
  std::vector<std::string> until, only;  // other forms of targets
  bool overwrite = false;                // protected outputs too

  void add_to(Options& options);
  /// The options of the flow; --set overrides --params. Errors: usage, with the option; invalid,
  /// with file and line.
  Result<flow::FlowOptions> read(os::Env& env) const;
};

}  // namespace berth::cli
