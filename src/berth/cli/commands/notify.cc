// berth notify: sends the notifications of a run again.
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/print.h"
#include "berth/engine/context.h"
#include "berth/engine/runs/notifications.h"

namespace berth::cli {
namespace {

struct NotifyOptions {
  std::string run, event = "end", task;
  int only = 0;

  void add_to(Options& options) {
    add_run(options, run);
    options.value("--event", event, "Send this event (default: end)")
        .named("EVENT")
        .one_of({"end", "failure", "first_result", "stalled"});
    options.value("--task", task, "Report this task, such as 17").named("TASK");
    options.value("--only", only, "Notify only the Nth target (default: all)")
        .between(0, static_cast<int>(exec::kMostNotify));
    options.example("berth notify digits-3");
  }
};

Result<int> notify(os::Env& env, const NotifyOptions& options) {
  os::install_stop_signals();
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto record, engine::find_run(context, options.run));
  const engine::NotificationRequest request{
      .event = *exec::Notify::kEventNames.value(options.event),
      .task = options.task,
      .only = static_cast<std::size_t>(options.only)};
  BERTH_TRY(engine::notify(context, record, request, print_error));
  return 0;
}

}  // namespace

Command notify_command() {
  return command("notify", "Send a run's notifications again", notify);
}

}  // namespace berth::cli
