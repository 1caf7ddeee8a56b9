#include "berth/cli/commands/plan_start.h"

namespace berth::cli {

void StartChoices::add_to(Options& options) {
  options
      .flag("--start", wanted,
            "Start the planned servers, one background run each; end one with berth stop")
      .excludes("--manifests");
  options
      .list("--on", clusters,
            "With --start: run on these clusters (default: this machine); see berth cluster list")
      .split_at(',')
      .one_at_a_time()
      .named("CLUSTER");
}

Status StartChoices::check() const {
  if (wanted || clusters.empty()) return {};
  return fail(ErrorKind::usage, "--on: needs --start");
}

}  // namespace berth::cli
