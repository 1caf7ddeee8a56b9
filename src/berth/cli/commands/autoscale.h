// Options of berth autoscale, which berth and berth-server both read.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/commands/serve.h"
#include "berth/cli/output.h"

namespace berth::cli {

struct AutoscaleOptions {
  Output output;
  bool apply = false, once = false, old_names = false;
  std::string path, prometheus, prometheus_token_file, hook, name_space = "default";
  std::string percentiles = "simulated";
  std::string interval, window, startup, hold, headroom;  // as written; "": the default
  std::optional<std::string> trace, server, listen;
  AccessOptions access;
  int most_up = 0, most_down = 1, most_changes = 0;
  std::vector<std::string> selects;  // SERVER=SELECTOR
  std::vector<std::string> line;     // the whole command line

  void add_to(Options& options);
};

Command autoscale_command(Result<int> (*autoscale)(os::Env&, const AutoscaleOptions&));

}  // namespace berth::cli
