// Attempts takes each attempt of a task from the scheduler's decision to the record of its end:
// it launches it on its worker, notes its start and its reports, has its outputs brought to their
// places when its process has ended well, tells the scheduler how it ended, and adds all of it to
// the recorder.
//
// Ownership: it owns the books of the attempts that run; it refers to the ActiveRun, the recorder
// and the workers. Threads: one. Failure: what goes wrong around one attempt is that attempt's end;
// no_start() tells that the machine starts no process at all any more.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/exec/unbegun.h"
#include "berth/run/drive/brief_tasks.h"
#include "berth/run/drive/recorder.h"
#include "berth/run/drive/workers.h"

namespace berth::run {

class Attempts {
 public:
  /// `settled` is called when an attempt has ended, with its worker, nullptr where that is gone.
  Attempts(ActiveRun& run, Recorder& recorder, Workers& workers,
           std::function<void(WorkerSlot*, const exec::Ended&)> settled)
      : run_(run), recorder_(recorder), workers_(workers), settled_(std::move(settled)) {}

  /// Carries out the effects of the scheduler, and sends brief tasks ahead to workers that queue.
  void carry_out();
  void handle(exec::FromWorker message);
  /// What the workload had left for later, of an attempt whose process had ended well.
  void on_finished(Finished finished);
  /// Ends the attempts that never came to a process.
  void end_unstarted();
  /// Deals again with the ends of an earlier runner's attempts that came before what they take in
  /// was brought. True: some were dealt with.
  bool retry_early();
  /// Fails those ends when nothing else runs or can start: what the tasks read will not come in
  /// this run. True: there were some.
  bool fail_early();
  /// Forces the end of an attempt from outside its worker. `later`: what follows from it may be
  /// done on another thread.
  void end(exec::Ended ended, bool later);
  /// Everything that runs on the worker is lost. Another machine is not insisted on for it.
  void lose(schedule::WorkerId worker, const std::string& because);
  /// All that run are told to end.
  void cancel_all();

  /// Attempts of an earlier runner that go on on this worker, and are their tasks' latest; any
  /// other is cancelled there. One that was started and never recorded is cancelled too, and its
  /// task waits until it has ended.
  std::vector<schedule::Earlier> adopt(const WorkerSlot& slot,
                                       std::span<const schedule::Earlier> attempts);
  /// What the scheduler made of those that were adopted: some may wait behind others, and what it
  /// will not have starts anew.
  void adopted(std::span<const schedule::Earlier> attempts,
               std::span<const schedule::Effect> effects);
  /// The end of an attempt whose agent is gone, as the agent's journal has it.
  void end_from_journal(exec::Ended ended);
  void report_metric(exec::Metric metric);
  /// Asks attempts to end that the workload has found hopeless by their reports.
  void end_hopeless();
  /// Of the attempts on the worker, what an agent that answers again does not know ends as lost.
  /// `known`: what it runs; `wanted`: whether the run wants it to go on.
  void reconcile(const WorkerSlot& slot, std::span<const schedule::Earlier> known, bool wanted);

  bool empty() const { return live_.empty(); }
  std::size_t count() const { return live_.size(); }
  bool runs_on(Token token, schedule::WorkerId worker) const;
  /// Labels of the tasks that run on one of these workers, sorted.
  std::vector<std::string> labels_on(const std::function<bool(const WorkerSlot&)>& chosen);
  /// Workers that reported the end of an attempt which is not recorded yet: they keep it.
  std::set<schedule::WorkerId> unrecorded() const;
  /// Ends that nobody but the journal of a dead agent keeps are not recorded yet.
  bool journals_are_needed() const;
  /// Attempts that never came to a process wait for end_unstarted().
  bool has_unstarted() const { return !unstarted_.empty(); }
  /// No task at all has come to a process for so long that the run is left for a resume.
  const std::optional<Error>& no_start() const { return no_start_; }

 private:
  struct Live {  // an attempt that runs, as far as the runner knows
    schedule::WorkerId worker;
    TaskNumber task;
    std::int64_t log_begin = 0;
    std::string devices{};  // as recorded
    bool started = false;   // its process
    bool ahead = false;     // it waits at its worker behind another
    bool unknown = false;   // to the store: its task starts anew once it has ended
  };

  void send_ahead();
  void launch(const schedule::StartAttempt& start);
  void on_started(const exec::Started& started);
  void note_advice(const exec::Started& started, const Live& live);
  void settle(const exec::Ended& ended);
  void settle_unknown(Token token);
  bool has_later(const exec::Ended& ended) const;
  bool is_known(Token token) const {
    const auto live = live_.find(token.value);
    return live != live_.end() && !live->second.unknown;
  }
  void watch_starts(const exec::Ended& ended);
  bool check_output(exec::Ended& ended, bool later);
  void learn(exec::Ended& ended, store::TaskState to);
  void take_effects(const exec::Ended& ended, std::int64_t log_begin,
                    const std::vector<schedule::Effect>& effects);

  ActiveRun& run_;
  Recorder& recorder_;
  Workers& workers_;
  std::function<void(WorkerSlot*, const exec::Ended&)> settled_;
  std::unordered_map<std::int64_t, Live> live_;              // by token
  std::unordered_map<std::int64_t, exec::Ended> finishing_;  // by token: ended well, see finish()
  /// Of tasks that were not taken over yet, or of which a later attempt runs: dealt with again.
  std::vector<exec::Ended> early_;
  std::vector<exec::Ended> unstarted_;               // attempts that did not come to a process
  BriefTasks brief_;                                 // on workers that queue
  exec::Unbegun unbegun_;                            // sent ahead, but never launched
  std::unordered_map<std::int64_t, int> no_space_;   // by task: starts without room for its files
  std::set<std::string> advice_;                     // notes where limits are advice, and why
  std::set<std::pair<Token, std::string>> missing_;  // metrics that were noted as not finite
  std::optional<Mono> no_start_since_;  // every attempt failed to start since then, and none runs
  std::optional<Error> no_start_;
};

}  // namespace berth::run
