// What a batch of changes makes of a run, thought through in memory: from what the database holds
// of the run and of the tasks that are named, to few statements of many rows each.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "berth/store/postgres_connection.h"

namespace berth::store {

/// $1: the run; then by column.
inline constexpr const char* kAddTasks =
    "INSERT INTO task (run_id, number, label, params_json)"
    " SELECT $1::bigint, * FROM unnest($2::bigint[], $3::text[], $4::text[])";

class PostgresBatch {
 public:
  PostgresBatch(RunId run, std::span<const Change> changes) : run_(run), changes_(changes) {}

  /// Locks the run's row, and reads what apply() needs to know.
  void ask(Statements& reads) const;
  /// `rows`: the answers. Errors as of Store::apply(); `epoch`: of the runner that writes, if one
  /// does.
  Result<Applied> apply(std::vector<Rows>& rows, std::optional<std::int64_t> epoch,
                        Statements& writes);

 private:
  struct Task {
    TaskState state = TaskState::waiting;
    Token token, forgiven;
    bool changed = false;
  };
  struct Metric {
    double value = 0;
    std::int64_t first_sequence = 0;
  };
  struct Kept {
    const ResultKept* result = nullptr;
    std::int64_t nth = 0;  // of those in this batch
  };

  Status read(std::vector<Rows>& rows);
  Status add(const AttemptStarted& change);
  Status add(const AttemptEnded& change);
  Status add(const AttemptPlaced& change);
  Status add(const MetricSeen& change);
  Status add(const TaskMoved& change);
  Status add(const TaskReopened& change);
  Status add(const TasksAdded& change);
  Status add(const TaskKeyed& change);
  Status add(const ResultKept& change);
  Status add(const RunMoved& change);
  Status add(const RunStepped& change);
  Status add(const RunSpecified& change);
  void write(Statements& writes) const;

  Result<Task*> find(TaskNumber number);
  Task* current(TaskNumber number, Token token);
  void end(Task& task, const AttemptEnded& change);
  void move(Task& task, TaskState to);

  RunId run_;
  std::span<const Change> changes_;

  Token last_token_;
  std::int64_t metrics_seen_ = 0, epoch_ = 0, tasks_ = 0;
  std::unordered_map<std::int64_t, Task> named_;   // by number
  std::unordered_set<std::string> labels_;         // of those to be added, which the run has
  std::array<std::int64_t, kTaskStates> grown_{};  // by TaskState
  std::map<std::pair<std::int64_t, std::string>, Metric> last_metrics_;
  std::map<std::int64_t, const TaskKeyed*> keys_;  // by number
  std::map<std::string, Kept> results_;
  std::int64_t results_kept_ = 0;
  Lists started_, placed_, ended_, metrics_, added_;
  Statements run_moves_;
  Applied applied_;
};

}  // namespace berth::store
