// Options of berth plan --start.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/options.h"

namespace berth::cli {

struct StartChoices {
  bool wanted = false;
  std::vector<std::string> clusters;  // the first one is preferred; empty: this machine

  void add_to(Options& options);
  /// Errors: usage, if --on is given without --start.
  Status check() const;
};

}  // namespace berth::cli
