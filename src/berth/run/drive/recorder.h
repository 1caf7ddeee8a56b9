// The Recorder makes durable what happens in a run. It gathers changes for a moment and commits
// them in one transaction of the store, counts what the run has come to, and shows the end of a
// task only after the commit that holds it.
//
// Ownership: it owns the run's output log; it refers to the ActiveRun and the store. Threads: one.
// Failure: commit() returns the store's or the log's error, and keeps what it had gathered.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/run/drive/active_run.h"
#include "berth/run/state/log_file.h"
#include "berth/run/state/run_end.h"
#include "berth/store/store.h"

namespace berth::run {

class Recorder {
 public:
  /// `committed` is called after each commit, before the ends that it holds are shown.
  Recorder(ActiveRun& run, store::Store& store, LogWriter log, std::function<void()> committed);

  /// Counts the tasks as the store has them: once, when the run was taken over.
  void begin();

  void add(store::Change change);
  void add(std::vector<store::Change> changes);
  /// The task is in this state from now on, as far as the counts go; the change itself is added
  /// apart.
  void count(TaskNumber number, store::TaskState to);
  /// New tasks, which the ActiveRun gets too; numbered on from the last.
  void add_tasks(std::vector<store::NewTask> tasks);
  void add_metric(const exec::Metric& metric);
  /// The end of an attempt that was launched when the log ended at `log_begin`, and what it means
  /// for its task.
  void add_end(const exec::Ended& ended, std::int64_t log_begin, store::TaskState to);

  /// A commit is due before long, even where nothing was added: workers keep what they reported
  /// until they are told that it is durable.
  void commit_soon();
  std::optional<Mono> commit_at() const { return commit_at_; }
  /// Whether the time of the next commit has come, or so much is gathered that it should be now.
  bool due() const;
  Status commit();

  LogWriter& log() { return log_; }
  /// The counts, the best score and the steps; whoever shows it fills in the rest.
  Progress& progress() { return progress_; }
  const Progress& progress() const { return progress_; }
  /// Counts in the progress what the run comes to, as far as that is known by now.
  void count_all();
  /// Whether something was completed since the take-over, and is durable.
  bool has_progressed() const { return progressed_; }
  /// What came of the run so far, as the store keeps it with the run.
  std::string result_json(std::optional<StoppedBy> by) const;

 private:
  void consider_best(const store::TaskRecord& task);

  ActiveRun& run_;
  store::Store& store_;
  LogWriter log_;
  std::function<void()> committed_;
  std::vector<store::Change> batch_;  // what has happened and is not durable yet
  std::vector<TaskEnd> ends_;         // shown once the batch is
  std::optional<Mono> commit_at_;
  Duration company_wait_{};  // of a change, for others to be committed with it
  Progress progress_;
  bool progressed_ = false;
};

}  // namespace berth::run
