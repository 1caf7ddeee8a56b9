#include "berth/engine/queries/task_output.h"

#include <map>
#include <optional>
#include <vector>

#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/run/state/log_file.h"

namespace berth::engine {
namespace {

/// Returns true if more output may follow.
Result<bool> is_open(Context& context, const TaskPath& path) {
  BERTH_ASSIGN(const auto record, find_run(context, path.run));
  if (!is_under_way(state_now(*context.env, record))) return false;
  if (path.task.empty()) return true;
  BERTH_ASSIGN(const auto task, find_task(context, record, path.task));
  return !store::final(task.state);
}

}  // namespace

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

struct OutputReader::State {
  Context& context;
  OutputRequest request;
  TaskPath path = parse_task_path(request.path);
  store::RunRecord record = {};
  TaskNumber only = {};  // the task to read; 0: all tasks
  OutputSource source = {};
  std::optional<TaskTable> tasks = {};
  std::optional<run::LogReader> log = {};  // nullopt: nothing was printed yet

  Status select() {
    if (record.kind == "command" && path.task.empty()) path.task = "1";
    if (path.task.empty()) {
      if (request.attempt == 0) return {};
      return fail(ErrorKind::usage, "--attempt: expected RUN/TASK, got '{}'", request.path);
    }
    BERTH_ASSIGN(const auto task, find_task(context, record, path.task));
    BERTH_ASSIGN(const auto attempts, context.store->attempts(record.id, task.number));
    if (request.attempt > std::ssize(attempts))
      return fail(ErrorKind::not_found, "{}/{} had {} attempts", record.name, path.task,
                  attempts.size());
    only = task.number;
    source = {.has_one_task = true, .has_attempts = attempts.size() > 1};
    return {};
  }

  Status pass_on(const run::LogFrame& frame,
                 const std::function<void(const OutputPart&)>& on_part) {
    if (only.value != 0 && frame.task != only) return {};
    BERTH_ASSIGN(const auto* task, tasks->find(frame.task));
    if (task == nullptr) return {};
    BERTH_ASSIGN(const std::int64_t attempt, tasks->attempt(*task, frame.token));
    if (request.attempt > 0 && attempt != request.attempt) return {};
    on_part({.task = task->label,
             .token = frame.token,
             .attempt = attempt > 0 ? fmt::format("attempt {}", attempt) : "lost attempt",
             .is_first_attempt = attempt == 1,
             .stream = frame.stream,
             .bytes = frame.bytes});
    return {};
  }
};

OutputReader::OutputReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputReader::OutputReader(OutputReader&& other) noexcept = default;
OutputReader::~OutputReader() = default;

Result<OutputReader> OutputReader::open(Context& context, const OutputRequest& request) {
  auto state = std::make_unique<State>(context, request);
  BERTH_ASSIGN(state->record, find_run(context, state->path.run));
  BERTH_TRY(state->select());
  state->tasks.emplace(context, state->record,
                       is_under_way(state_now(*context.env, state->record)));
  return OutputReader(std::move(state));
}

const OutputSource& OutputReader::source() const {
  return state_->source;
}

Result<bool> OutputReader::is_growing() const {
  return is_open(state_->context, state_->path);
}

Result<bool> OutputReader::read_some(const std::function<void(const OutputPart&)>& on_part) {
  Context& context = state_->context;
  auto& log = state_->log;
  if (!log) {
    auto opened =
        run::LogReader::open(*context.env, run::run_directory(context, state_->record.name));
    if (!opened) return false;
    log.emplace(*std::move(opened));
  }
  Status status;
  BERTH_ASSIGN(const bool has_more, log->read_some(Token{}, [&](const run::LogFrame& frame) {
    if (status) status = state_->pass_on(frame, on_part);
  }));
  BERTH_TRY(status);
  return has_more;
}

}  // namespace berth::engine
