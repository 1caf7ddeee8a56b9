// What berth and berth-server both read of the words of berth dashboard.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/commands/serve.h"

namespace berth::cli {

struct DashboardOptions {
  std::string run;  // on whose page it opens; "": that of all
  std::string listen = "127.0.0.1:0";
  std::vector<std::string> fleets;
  std::string profile;
  AccessOptions access;
  bool look_only = false;
  std::vector<std::string> line;  // the whole command line

  void add_to(Options& options);
};

Command dashboard_command(Result<int> (*dashboard)(os::Env&, const DashboardOptions&));

}  // namespace berth::cli
