// berth machine: shows what this process may use, what is free, and who uses the rest.
#include "berth/render/machines/machine.h"
#include "berth/cli/output.h"

namespace berth::cli {
namespace {

struct MachineOptions {
  Output output;
  bool probe = false;
  std::string disk_directory;

  void add_to(Options& options) {
    output.add_to(options);
    options.flag("--probe", probe, "Test whether limits are enforced, with a process in a cgroup");
    options
        .value("--disk-dir", disk_directory,
               "Measure the volume of this directory (default: the state directory)")
        .named("DIR");
    options.example("berth machine --json");
  }
};

Result<int> show_machine(os::Env& env, const MachineOptions& options) {
  BERTH_ASSIGN(auto report, engine::machine_report(env, options.probe, options.disk_directory));
  engine::find_starts(env, report);
  options.output.print(report);
  return 0;
}

}  // namespace

Command machine_command() {
  return command("machine", "Show the resources of this machine and who uses them", show_machine);
}

}  // namespace berth::cli
