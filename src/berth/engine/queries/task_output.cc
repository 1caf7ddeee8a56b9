#include "berth/engine/queries/task_output.h"

#include <map>
#include <optional>
#include <vector>

#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/run/state/log_file.h"

namespace berth::engine {
namespace {

constexpr Duration kFollowPollInterval = std::chrono::milliseconds(100);

/// Returns true if more output may follow.
Result<bool> is_open(Context& context, const TaskPath& path) {
  BERTH_ASSIGN(const auto record, find_run(context, path.run));
  if (!is_under_way(state_now(*context.env, record))) return false;
  if (path.task.empty()) return true;
  BERTH_ASSIGN(const auto task, find_task(context, record, path.task));
  return !store::final(task.state);
}

/// The tasks of a run and the numbers of their attempts, which grow while the run continues.
class TaskTable {
 public:
  /// `is_written`: a runner records soon what is in the log.
  TaskTable(Context& context, const store::RunRecord& run, bool is_written)
      : context_(context), run_(run), is_written_(is_written) {}

  /// nullptr: the task is not in the store.
  Result<const store::TaskRecord*> find(TaskNumber number) {
    const auto at = static_cast<std::size_t>(number.value - 1);
    BERTH_TRY(until_recorded([&]() -> Result<bool> {
      if (at < tasks_.size()) return true;
      BERTH_ASSIGN(tasks_, context_.store->tasks(run_.id));
      return at < tasks_.size();
    }));
    return at < tasks_.size() ? &tasks_[at] : nullptr;
  }

  /// Counted from 1; 0 for one that began just before its runner died, and was not recorded.
  Result<std::int64_t> attempt(const store::TaskRecord& of, Token token) {
    if (of.token == token && of.attempts == 1) return 1;
    if (attempts_.contains(token)) return attempts_[token];
    BERTH_TRY(until_recorded([&]() -> Result<bool> {
      BERTH_ASSIGN(const auto all, context_.store->attempts(run_.id, of.number));
      for (const auto& one : all) attempts_[one.token] = one.number;
      return attempts_.contains(token);
    }));
    return attempts_[token];
  }

 private:
  /// Waits for the record, which is written after the log.
  Status until_recorded(const std::function<Result<bool>()>& look) {
    constexpr int kLooks = 25;
    constexpr Duration kBetween = std::chrono::milliseconds(20);
    for (int i = 0; i < kLooks; ++i) {
      BERTH_ASSIGN(const bool is_recorded, look());
      if (is_recorded || !is_written_) break;
      BERTH_TRY(context_.env->wait({}, context_.env->now() + kBetween));
    }
    return {};
  }

  Context& context_;
  const store::RunRecord& run_;
  const bool is_written_;
  std::vector<store::TaskRecord> tasks_;
  std::map<Token, std::int64_t> attempts_;
};

/// The task to read, and what is known of it.
struct Selected {
  TaskNumber only;  ///< 0: all tasks.
  OutputSource source;
};

Result<Selected> select(Context& context, const store::RunRecord& record, const TaskPath& path,
                        const OutputRequest& request) {
  Selected selected;
  if (path.task.empty()) {
    if (request.attempt == 0) return selected;
    return fail(ErrorKind::usage, "--attempt: expected RUN/TASK, got '{}'", request.path);
  }
  BERTH_ASSIGN(const auto task, find_task(context, record, path.task));
  BERTH_ASSIGN(const auto attempts, context.store->attempts(record.id, task.number));
  if (request.attempt > std::ssize(attempts))
    return fail(ErrorKind::not_found, "{}/{} had {} attempts", record.name, path.task,
                attempts.size());
  return Selected{task.number, {.has_one_task = true, .has_attempts = attempts.size() > 1}};
}

}  // namespace

Status read_output(Context& context, const OutputRequest& request, OutputObserver& observer) {
  os::Env& env = *context.env;
  TaskPath path = parse_task_path(request.path);
  BERTH_ASSIGN(const auto record, find_run(context, path.run));
  if (record.kind == "command" && path.task.empty()) path.task = "1";
  BERTH_ASSIGN(const auto selected, select(context, record, path, request));
  BERTH_TRY(observer.on_source(selected.source));
  TaskTable tasks(context, record, is_under_way(state_now(env, record)));
  const auto pass_on = [&](const run::LogFrame& frame) -> Status {
    if (selected.only.value != 0 && frame.task != selected.only) return {};
    BERTH_ASSIGN(const auto* task, tasks.find(frame.task));
    if (task == nullptr) return {};
    BERTH_ASSIGN(const std::int64_t attempt, tasks.attempt(*task, frame.token));
    if (request.attempt > 0 && attempt != request.attempt) return {};
    observer.on_part({.task = task->label,
                      .token = frame.token,
                      .attempt = attempt > 0 ? fmt::format("attempt {}", attempt) : "lost attempt",
                      .is_first_attempt = attempt == 1,
                      .stream = frame.stream,
                      .bytes = frame.bytes});
    return {};
  };
  std::optional<run::LogReader> reader;
  for (;;) {
    BERTH_ASSIGN(const bool more, is_open(context, path));  // before reading, so nothing is missed
    if (!reader) {
      auto opened = run::LogReader::open(env, run::run_directory(context, record.name));
      if (opened) reader.emplace(*std::move(opened));
    }
    if (reader) {
      Status status;
      BERTH_TRY(reader->read(Token{}, [&](const run::LogFrame& frame) {
        if (status) status = pass_on(frame);
      }));
      BERTH_TRY(status);
    }
    if (!request.follow || !more) return {};
    observer.on_caught_up();
    BERTH_TRY(env.wait({}, env.now() + kFollowPollInterval));
  }
}

}  // namespace berth::engine
