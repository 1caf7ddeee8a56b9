// `notify` of a run: whoever its file or --notify names is told when the run ends, a task fails,
// the first result is there, or nothing moves. A process apart tells each of them, and tries again
// where that fails, so that a run never waits for it. Each is told of the first failure, the first
// result and the first standstill of a run, and of each of its ends: once, but where whoever tells
// it is killed before that is noted.
#pragma once

#include "berth/cli/options.h"
#include "berth/exec/notify.h"
#include "berth/run/runner.h"

namespace berth::cli {

/// Starts telling those who want to hear of the event and were not told yet; `task` is the one that
/// it is about, or "", and `still` for how long nothing has moved. A failure to start it is told on
/// standard error.
void start_telling(os::Env& env, run::Context& context, const store::RunRecord& record,
                   exec::Notify::Event event, const std::string& task = {}, Duration still = {});

/// Passes on all to another observer, and starts telling of what it sees.
class Notifier final : public run::Observer {
 public:
  /// All of them outlive it.
  Notifier(os::Env& env, run::Context& context, const store::RunRecord& record,
           run::Observer& shown);

  void on_progress(const run::Progress& progress, Mono now) override;
  void on_task_end(const run::TaskEnd& end) override;
  void on_output(const exec::Output& output) override { shown_.on_output(output); }
  void on_note(const std::string& note) override { shown_.on_note(note); }
  void on_question(const run::Question& question) override { shown_.on_question(question); }
  bool wants_output() override { return shown_.wants_output(); }

 private:
  void tell_once(exec::Notify::Event event, const std::string& task);

  os::Env& env_;
  run::Context& context_;
  const store::RunRecord& record_;
  run::Observer& shown_;
  const std::vector<exec::Notify> notify_;
  std::vector<exec::Notify::Event> told_;
  store::Counts counts_;
  Mono moved_;        // when a task began or ended last
  Duration still_{};  // since then, when it was looked at last
};

}  // namespace berth::cli
