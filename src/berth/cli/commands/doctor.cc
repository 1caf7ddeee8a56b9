// berth doctor: what this machine lets Berth do, why not more, and what to do about it.
#include "berth/cli/output.h"
#include "berth/render/machines/examination.h"

namespace berth::cli {
namespace {

struct DoctorOptions {
  Output output;
  bool offline = false;

  void add_to(Options& options) {
    output.add_to(options);
    options.flag("--offline", offline, "Skip checks that contact clusters");
    options.footer(
        "Exits with 1 if something needs to be done.\n"
        "\n"
        "Example:\n"
        "  berth doctor");
  }
};

Result<int> examine(os::Env& env, const DoctorOptions& options) {
  os::install_stop_signals();
  const auto examination = engine::examine(env, options.offline);
  options.output.print(examination);
  return examination.faults() == 0 ? 0 : 1;
}

}  // namespace

Command doctor_command() {
  return command("doctor", "Check this machine and explain how to fix problems", examine);
}

}  // namespace berth::cli
