// This says what each kind of change means: a pure function from the rows that a batch of changes
// depends on to the rows that the batch writes, or to the reason why it is refused. A store reads
// the rows that rows_wanted() names, calls transition(), and writes what it returns, all under its
// lock of the run. No store decides anything by itself.
//
// Ownership: RowWrites refers to the changes that it was made from; they have to outlive it.
// Threads: any; there is no state. Failure: the errors of Store::apply(); nothing is written then.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "berth/store/store.h"

namespace berth::store {

struct RunRow {
  RunRecord record;               ///< Its specification is left empty: that is a row of its own.
  Token last_token;               ///< The token of the next attempt must be greater.
  std::int64_t metrics_seen = 0;  ///< The sequence number of the run's last metric.
};

/// The columns of a task's row that decide whether a change is accepted.
struct TaskRow {
  TaskState state = TaskState::waiting;
  Token token;     ///< The token of the latest attempt; 0 before the first.
  Token forgiven;  ///< Attempts up to this token use up none of the task's retries.
};

/// The rows that a batch of changes depends on, besides the row of the run.
struct RowsWanted {
  std::vector<TaskNumber> tasks;    ///< The numbers ascend, each comes once, some may not exist.
  std::vector<std::string> labels;  ///< The batch adds tasks of these labels.
};
RowsWanted rows_wanted(std::span<const Change> changes);

/// The rows as a store found them. What does not exist is left out.
struct CurrentRows {
  RunRow run;
  std::vector<std::pair<TaskNumber, TaskRow>> tasks;
  std::unordered_set<std::string> labels;  ///< Those of RowsWanted that the run has already.
};

/// The rows that are to be written, in the order of the members. No member but `results` names a
/// row twice.
struct RowWrites {
  struct AddedTask {
    TaskNumber number;
    const NewTask* task = nullptr;
  };
  struct AddedAttempt {
    TaskNumber task;
    AttemptRecord record;  ///< Its number is 0, since no row has one. It may have ended already.
  };
  struct AddedMetric {
    const MetricSeen* metric = nullptr;
    std::int64_t sequence = 0;
  };
  struct LastMetric {
    TaskNumber task;
    const std::string* name = nullptr;
    double value = 0;
    std::int64_t first_sequence = 0;  ///< A row of this name that the task has keeps its own.
  };

  struct ChangedTask {
    TaskNumber number;
    TaskRow row;
    const TaskKeyed* key = nullptr;  ///< Its digest and what that depends on; nullptr: unchanged.
  };

  std::vector<AddedTask> added_tasks;        ///< Inserted; they wait, without attempts.
  std::vector<ChangedTask> tasks;            ///< Updated.
  std::vector<const TaskKeyed*> keys;        ///< Updates of tasks of which nothing else changes.
  std::vector<const ParamsSet*> params;      ///< Updates of tasks.
  std::vector<AddedAttempt> added_attempts;  ///< Inserted.
  std::vector<AttemptKept> kept;             ///< Updates of attempts of earlier batches.
  std::vector<AttemptPlaced> placed;         ///< Updates of attempts of earlier batches.
  std::vector<AttemptEnded> ended;           ///< Updates of attempts of earlier batches.
  std::vector<AddedMetric> added_metrics;    ///< Inserted.
  std::vector<LastMetric> last_metrics;      ///< Inserted, or their values are updated.
  /// Each replaces an earlier result of its digest, also one of this batch, and takes a new
  /// sequence number. Where that one had the same outputs and origin, it keeps its number, and only
  /// the time changes.
  std::vector<const ResultKept*> results;
  RunRow run;                              ///< Updated.
  const std::string* spec_json = nullptr;  ///< Updated, unless it is nullptr.
  Applied applied;
};

/// `epoch` is that of the runner that makes the changes, where the store knows it. stale: another
/// runner has taken the run over since. Other errors are those of Store::apply().
Result<RowWrites> transition(CurrentRows rows, std::span<const Change> changes,
                             std::optional<std::int64_t> epoch = {});

/// The runner that takes a run over, as in Store::take_over().
struct NewRunner {
  std::int64_t pid = 0, started_at = 0;
  std::string host;
  std::span<const Token> alive;  ///< The tokens of attempts that go on.
};
/// The function of Store::take_over(). `rows` has all tasks of the run that are running or stopped.
RowWrites take_over(CurrentRows rows, const NewRunner& runner, Wall now);

}  // namespace berth::store
