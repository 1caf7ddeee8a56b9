// What each kind of change means: a pure function from the rows that a batch of changes depends on
// to the rows that the batch writes, or to the reason why the batch is refused. A store reads the
// rows that rows_wanted() names, calls transition(), and writes what it returned, all of it under
// its lock of the run. So no store decides anything by itself.
//
// Ownership: RowWrites refers to the changes that it was made from; they have to outlive it.
// Threads: any; there is no state. Failure: the errors of Store::apply(); nothing is written then.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "berth/store/store.h"

namespace berth::store {

/// The row of a run.
struct RunRow {
  RunRecord record;               // Its specification is empty: that is a row of its own.
  Token last_token;               // The token of the next attempt must be greater.
  std::int64_t metrics_seen = 0;  // The sequence number of the run's last metric.
};

/// The columns of a task's row that decide whether a change is accepted.
struct TaskRow {
  TaskState state = TaskState::waiting;
  Token token;     // Of the latest attempt; 0 before the first.
  Token forgiven;  // Attempts up to this token use up none of the task's retries.
};

/// The rows that a batch of changes depends on, besides that of the run.
struct RowsWanted {
  std::vector<TaskNumber> tasks;    // Each number once, ascending; some may not exist.
  std::vector<std::string> labels;  // Of tasks to be added: which of them does the run have?
};
RowsWanted rows_wanted(std::span<const Change> changes);

/// What a store found of them.
struct CurrentRows {
  RunRow run;
  std::vector<std::pair<TaskNumber, TaskRow>> tasks;
  std::unordered_set<std::string> labels;
};

/// The rows to be written, in the order of the members. No row is named twice.
struct RowWrites {
  struct AddedTask {
    TaskNumber number;
    const NewTask* task = nullptr;
  };
  struct AddedAttempt {
    TaskNumber task;
    AttemptRecord record;  // Without its number, which no row has. It may have ended already.
  };
  struct AddedMetric {
    const MetricSeen* metric = nullptr;
    std::int64_t sequence = 0;
  };
  struct LastMetric {
    TaskNumber task;
    const std::string* name = nullptr;
    double value = 0;
    std::int64_t first_sequence = 0;  // Where the task has a row of this name, that one's stays.
  };

  std::vector<AddedTask> added_tasks;                 // Inserted, waiting, without attempts.
  std::vector<std::pair<TaskNumber, TaskRow>> tasks;  // Updated.
  std::vector<const TaskKeyed*> keys;                 // Updates of tasks.
  std::vector<AddedAttempt> added_attempts;           // Inserted.
  std::vector<AttemptPlaced> placed;                  // Updates of attempts that were there before.
  std::vector<AttemptEnded> ended;                    // So are these.
  std::vector<AddedMetric> added_metrics;             // Inserted.
  std::vector<LastMetric> last_metrics;               // Inserted, or their values updated.
  std::vector<const ResultKept*> results;  // In order; the same digest may come again: the later
                                           // one replaces the earlier, and both are counted.
  RunRow run;                              // Updated.
  const std::string* spec_json = nullptr;  // Updated, unless nullptr.
  Applied applied;
};

/// `epoch`: that of the runner that makes the changes, where the store knows it; stale when another
/// runner has taken the run over since.
Result<RowWrites> transition(CurrentRows rows, std::span<const Change> changes,
                             std::optional<std::int64_t> epoch = {});

/// A runner as Store::take_over() has it.
struct NewRunner {
  std::int64_t pid = 0, started_at = 0;
  std::string host;
  std::span<const Token> alive;  // Attempts that go on.
};
/// `rows` holds the tasks of the run that are running or stopped.
RowWrites take_over(CurrentRows rows, const NewRunner& runner, Wall now);

}  // namespace berth::store
