// What berth run and berth check take for a flow beside its file: values of parameters, targets,
// and steps that run whatever the cache has.
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
  std::vector<std::string> until, only;  // targets, given otherwise
  bool overwrite = false;                // what is protected, too

  void add_to(Options& options);
  bool any() const;
  /// What was chosen; --set beats --params. usage: names the option; invalid: names file and line.
  Result<flow::FlowOptions> read(os::Env& env) const;
};

}  // namespace berth::cli
