// berth top: what runs and who holds what of this machine and of the clusters: with keys on a
// terminal, once elsewhere.
#include <unistd.h>

#include "berth/cli/output.h"
#include "berth/cli/top/top_live.h"
#include "berth/os/loop.h"
#include "berth/render/machines/machine.h"

namespace berth::cli {
namespace {

constexpr Duration kAnswersWithin = std::chrono::seconds(15);

struct TopOptions {
  Output output;
  bool once = false;

  void add_to(Options& options) {
    output.add_to(options);
    options.flag("--once", once, "Print one page and exit, even on a terminal");
    options.example("berth top --once");
  }
};

/// A terminal that can be drawn on.
bool is_screen(os::Env& env) {
  return ::isatty(STDOUT_FILENO) == 1 && env.variable("TERM").value_or("dumb") != "dumb";
}

Result<int> top(os::Env& env, const TopOptions& options) {
  if (!options.output.is_json() && !options.once && is_screen(env)) return top_live(env);
  BERTH_ASSIGN(engine::MachineReport report, engine::machine_report(env));
  engine::find_starts(env, report);
  BERTH_ASSIGN(auto clusters, TopClusters::open(env));
  const Mono until = env.now() + kAnswersWithin;
  while (!clusters.settled() && env.now() < until) BERTH_TRY(env.loop().turn(until));
  options.output.print(render::MachineAndClusters{report, clusters.text(), clusters.json()});
  return 0;
}

}  // namespace

Command top_command() {
  return command("top", "Watch runs and resources; sort, filter, stop, read logs", top);
}

}  // namespace berth::cli
