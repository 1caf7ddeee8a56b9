// The `notify:` of a run: a command, a webhook or a mail address that is notified when the run
// ends, a task fails, the first result arrives, or nothing moves. A separate `berth notify` process
// sends each notification and retries it, so that a run never waits for it. Each target is notified
// of the first failure, the first result and the first standstill of a run, and of each of its
// ends: once, unless the sender is killed before it has recorded that.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/process.h"
#include "berth/exec/notify.h"
#include "berth/run/drive/runner.h"

namespace berth::engine {

struct NotificationRequest {
  exec::Notify::Event event = exec::Notify::Event::end;
  std::string task = {};  ///< The label of the task that the event is about; "" for the run.
  std::size_t only = 0;   ///< The number of the only target to notify, from 1; 0: all of them.
  bool retries = true;    ///< Retry for some minutes, and not only try once.
};

/// Sends the notifications; each try is reported to `print`.
/// Errors: invalid, if the run has no targets or the task is missing; interrupted; that of
/// the first target that could not be notified.
Status notify(run::Context& context, const store::RunRecord& record,
              const NotificationRequest& request, const Print& print);

/// Starts processes that notify the targets of the event that have not been notified of it; `still`
/// is how long nothing has moved. Failures to start them are reported to `print`.
void start_notifying(run::Context& context, const store::RunRecord& record,
                     exec::Notify::Event event, const std::string& task, Duration still,
                     const Print& print);

/// Passes everything to another observer, and starts notifying about what it sees.
class Notifier final : public run::Observer {
 public:
  /// The arguments outlive the Notifier.
  Notifier(run::Context& context, const store::RunRecord& record, run::Observer& next,
           const Print& print);

  void on_progress(const run::Progress& progress, Mono now) override;
  void on_task_end(const run::TaskEnd& end) override;
  void on_output(const exec::Output& output) override { next_.on_output(output); }
  void on_note(const std::string& note) override { next_.on_note(note); }
  void on_question(const run::Question& question) override { next_.on_question(question); }
  bool wants_output() override { return next_.wants_output(); }

 private:
  void notify_once(exec::Notify::Event event, const std::string& task);

  run::Context& context_;
  const store::RunRecord& record_;
  run::Observer& next_;
  const Print& print_;
  const std::vector<exec::Notify> targets_;
  std::vector<exec::Notify::Event> sent_;
  store::Counts counts_;
  Mono moved_;        // when a task last started or ended
  Duration still_{};  // since then, at the last on_progress()
};

}  // namespace berth::engine
