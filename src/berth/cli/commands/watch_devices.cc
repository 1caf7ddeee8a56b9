// berth watch-devices FILE: what `berth run` starts beside itself to ask the drivers how the
// devices are; FILE is the topology that it read first. Not for people: berth machine shows the
// same.
#include <unistd.h>

#include "berth/base/units.h"
#include "berth/cli/options.h"
#include "berth/machine/devices/health_watch.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::cli {
namespace {

struct WatchOptions {
  std::string file;

  void add_to(Options& options) {
    options.value("FILE", file, "Topology at the start").required();
    options.hide();
  }
};

Result<int> watch_devices(os::Env& env, const WatchOptions& options) {
  Duration every = std::chrono::seconds(15);
  if (const auto text = env.variable("BERTH_HEALTH_EVERY")) {
    auto wanted = parse_duration(*text);
    if (!wanted || *wanted <= Duration(0))
      return fail(ErrorKind::usage, "BERTH_HEALTH_EVERY={}: expected a duration such as 15s",
                  *text);
    every = *wanted;
  }
  os::install_stop_signals();
  BERTH_ASSIGN(const std::string text, env.read_file(options.file, topology::kMostText));
  BERTH_ASSIGN(const auto first, topology::read_json(text, options.file));
  const os::Fd out(env, STDOUT_FILENO);
  // Its end is that of the run, which reads no more.
  (void)machine::watch_health(env, {}, first, machine::Ledger::default_directory(env), every, out);
  return 0;
}

}  // namespace

Command watch_devices_command() {
  return command("watch-devices", "Report the health of GPUs to a run", watch_devices);
}

}  // namespace berth::cli
