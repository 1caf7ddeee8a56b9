#include "berth/store/records.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "berth/base/json.h"
#include "berth/base/text.h"

namespace berth::store {
namespace {

constexpr auto kRunStates = names<RunState>({
    {RunState::queued, "queued"},
    {RunState::running, "running"},
    {RunState::done, "done"},
    {RunState::failed, "failed"},
    {RunState::stopped, "stopped"},
});
/// The database's word for a queued run. Runners of an earlier Berth may still read it.
constexpr std::string_view kStoredQueued = "waiting";
constexpr auto kTaskStateNames = names<TaskState>({
    {TaskState::waiting, "waiting"},
    {TaskState::running, "running"},
    {TaskState::done, "done"},
    {TaskState::cached, "cached"},
    {TaskState::skipped, "skipped"},
    {TaskState::failed, "failed"},
    {TaskState::stopped, "stopped"},
});
constexpr auto kPhases = names<Phase>({
    {Phase::init, "init"},
    {Phase::eval, "eval"},
    {Phase::retry, "retry"},
    {Phase::done, "done"},
});

Status validate_params(const std::string& label, const Values& params) {
  for (auto at = params.begin(); at != params.end(); ++at) {
    const auto& [name, value] = *at;
    const auto same_name = [&](const auto& other) { return other.first == name; };
    if (std::any_of(params.begin(), at, same_name))
      return fail(ErrorKind::invalid, "task '{}' has the parameter '{}' twice", clip(label),
                  clip(name));
    if (valid_utf8(name) != name || valid_utf8(value) != value)
      return fail(ErrorKind::invalid, "task '{}': parameter '{}' is not UTF-8", clip(label),
                  clip(name));
  }
  return {};
}

/// Takes a flat object of strings apart without building a tree; anything else stops the parser.
class FlatObject : public nlohmann::json_sax<Json> {
 public:
  Values values;

  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t) override { return false; }
  bool number_unsigned(number_unsigned_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool start_object(std::size_t) override { return ++objects_ == 1; }
  bool end_object() override { return true; }
  bool key(string_t& name) override {
    values.emplace_back(std::move(name), "");
    return true;
  }
  bool string(string_t& value) override {
    if (objects_ == 0) return false;
    values.back().second = std::move(value);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  int objects_ = 0;
};

}  // namespace

std::string_view name(RunState state) {
  return kRunStates.name(state);
}
std::string_view name(TaskState state) {
  return kTaskStateNames.name(state);
}
std::string_view name(Phase phase) {
  return kPhases.name(phase);
}
std::optional<RunState> run_state(std::string_view name) {
  if (name == kStoredQueued) return RunState::queued;
  return kRunStates.value(name);
}
std::string_view stored_name(RunState state) {
  return state == RunState::queued ? kStoredQueued : name(state);
}
std::optional<TaskState> task_state(std::string_view name) {
  return kTaskStateNames.value(name);
}
std::optional<Phase> phase(std::string_view name) {
  return kPhases.value(name);
}

std::unexpected<Error> no_run(RunId run) {
  return fail(ErrorKind::not_found, "no run with the id {}", run.value);
}

std::unexpected<Error> no_task(RunId run, TaskNumber task) {
  return fail(ErrorKind::not_found, "run {} has no task {}", run.value, task.value);
}

std::int64_t& Counts::of(TaskState state) {
  std::int64_t Counts::* const of_state[kTaskStates] = {
      &Counts::waiting, &Counts::running, &Counts::done,   &Counts::cached,
      &Counts::skipped, &Counts::failed,  &Counts::stopped};
  return this->*of_state[static_cast<std::size_t>(state)];
}

std::int64_t Counts::total() const {
  return waiting + running + done + cached + skipped + failed + stopped;
}

void add_attempt(TaskRecord& task, AttemptRecord attempt) {
  ++task.attempts;
  task.started = attempt.started;
  task.ended = attempt.ended;
  task.resources = std::move(attempt.resources);
  task.host = std::move(attempt.host);
  task.devices = std::move(attempt.devices);
  task.lease = attempt.lease;
  if (!attempt.ended) return;
  task.cause = attempt.cause;
  task.exit_code = attempt.exit_code;
  task.signal = attempt.signal;
}

void read_cause(std::string_view text, AttemptRecord& attempt) {
  attempt.cause = exec::kCauseNames.value(text);
  if (attempt.cause || text.empty()) return;
  constexpr std::string_view kSignal = "signal ";
  int signal = 0;
  if (text.starts_with(kSignal))
    std::from_chars(text.data() + kSignal.size(), text.data() + text.size(), signal);
  for (const auto name : exec::kCauseNames.all()) {
    const auto cause = exec::kCauseNames.value(name);
    if (exec::describe(cause, attempt.exit_code, signal) != text) continue;
    attempt.cause = cause;
    attempt.signal = signal;
    return;
  }
  attempt.detail = text;
}

void end(AttemptRecord& attempt, const AttemptEnded& change) {
  attempt.ended = change.at;
  attempt.cause = change.cause;
  attempt.exit_code = change.exit_code;
  attempt.signal = change.signal;
  attempt.detail = change.detail;
  attempt.cpu_ms = change.cpu_ms;
  attempt.peak_mem = change.peak_mem;
  attempt.log_begin = change.log_begin;
  attempt.log_end = change.log_end;
}

bool final(TaskState state) {
  return state == TaskState::done || state == TaskState::cached || state == TaskState::skipped ||
         state == TaskState::failed;
}

namespace {

/// `before`: how many tasks there are already.
Status validate_tasks(const std::vector<NewTask>& tasks, std::size_t before) {
  if (tasks.size() + before > kMostTasks)
    return fail(ErrorKind::invalid, "{} tasks; the most is {}", tasks.size() + before, kMostTasks);
  std::unordered_set<std::string_view> labels;
  labels.reserve(tasks.size());
  for (const NewTask& task : tasks) {
    if (!labels.insert(task.label).second)
      return fail(ErrorKind::exists, "two tasks labelled '{}'", clip(task.label));
    BERTH_TRY(validate_params(task.label, task.params));
  }
  return {};
}

}  // namespace

Status validate(const NewRun& run) {
  if (run.name.empty()) return fail(ErrorKind::invalid, "a run needs a name");
  if (auto status = validate_tasks(run.tasks, 0); !status)
    return std::unexpected(within(fmt::format("run '{}'", clip(run.name)), status.error()));
  return {};
}

Status validate(const TasksAdded& change, std::int64_t tasks) {
  return validate_tasks(change.tasks, static_cast<std::size_t>(tasks));
}

Status validate(const ParamsSet& change) {
  return validate_params(fmt::format("{}", change.task.value), change.params);
}

Status validate(const AttemptEnded& change) {
  if (change.next == TaskState::running || change.next == TaskState::cached ||
      change.next == TaskState::skipped)
    return fail(ErrorKind::invalid, "an attempt does not end with its task {}", name(change.next));
  return {};
}

Status validate(const TaskMoved& change) {
  if (change.to == TaskState::running)
    return fail(ErrorKind::invalid, "a task is not {} without an attempt", name(change.to));
  return {};
}

std::string to_json(const Values& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object.emplace(name, value);
  return dump(object);
}

Result<Values> values_from_json(std::string_view text) {
  FlatObject object;
  if (!Json::sax_parse(text, &object))
    return fail(ErrorKind::corrupt, "not a flat JSON object of texts: {}", clip(text));
  return std::move(object.values);
}

}  // namespace berth::store
