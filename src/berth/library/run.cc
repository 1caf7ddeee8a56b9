// berth/run.h: runs that are driven by processes in the background.
#include "berth/run.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "berth/api/calls/calls.h"
#include "berth/base/guarded.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/runs/control.h"
#include "berth/engine/runs/detach.h"
#include "berth/library/runs_state.h"
#include "berth/os/wake.h"
#include "berth/run/drive/prepare.h"
#include "berth/run/drive/runner.h"
#include "berth/run/state/find_run.h"
#include "berth/run/state/log_file.h"

namespace berth {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);
bool has_ended(store::TaskState state) {
  return store::final(state) || state == store::TaskState::stopped;
}

}  // namespace

Run library::run_of(const run::Context& context, const store::RunRecord& record) {
  const store::Counts& counts = record.counts;
  Run run{.name = record.name,
          .kind = record.kind,
          .state = engine::state_now(*context.env, record, context.state_directory),
          .error = record.error,
          .counts = {counts.waiting, counts.running, counts.done, counts.cached, counts.skipped,
                     counts.failed, counts.stopped},
          .created = std::chrono::milliseconds(to_ms(record.created)),
          .ended = {}};
  if (record.ended) run.ended = std::chrono::milliseconds(to_ms(*record.ended));
  return run;
}

engine::Note Runs::State::note() const {
  return [this](const std::string& note) {
    if (on_note) (void)guarded("on_note", [&] { on_note(note); });
  };
}

Result<store::RunRecord> Runs::State::record(const engine::RunRequest& request) {
  BERTH_ASSIGN(auto submission, engine::read_submission(*env, request));
  BERTH_TRY(engine::check(context, submission, note()));
  return engine::submit(context, submission, note());
}

Result<std::string> Runs::State::start(const engine::RunRequest& request) {
  BERTH_ASSIGN(const auto record, engine::start(context, request, note()));
  return record.name;
}

Result<std::string> Runs::State::printed(const store::RunRecord& record,
                                         const store::TaskRecord& task, exec::Stream stream) {
  std::string text;
  auto reader = run::LogReader::open(*env, run::run_directory(context, record.name));
  if (!reader && reader.error().kind == ErrorKind::not_found) return text;
  if (!reader) return std::unexpected(reader.error());
  BERTH_TRY(reader->read(Token{}, [&](const run::LogFrame& frame) {
    if (frame.task == task.number && frame.stream == stream) text += frame.bytes;
  }));
  return text;
}

namespace {

/// Tells an observer what is new of a run, each time it looks.
class Following {
 public:
  Following(os::Env& env, run::Context& context, std::string name, RunObserver& observer)
      : env_(env), context_(context), name_(std::move(name)), observer_(observer) {}

  Status look(const store::RunRecord& record, const Run& run) {
    BERTH_ASSIGN(tasks_, context_.store->tasks(record.id));
    BERTH_TRY(tell_output());
    for (const auto& task : tasks_) {
      auto& [token, ended] = told_[task.number];
      if (has_ended(task.state) && (!ended || token != task.token)) {
        observer_.on_task_end(library::task_of(task));
        changed_ = true;
      }
      token = task.token, ended = has_ended(task.state);
    }
    if (changed_ || run.state != state_ || !(record.counts == counts_)) observer_.on_progress(run);
    changed_ = false;
    state_ = run.state;
    counts_ = record.counts;
    return {};
  }

 private:
  Status tell_output() {
    if (!reader_) {
      auto opened = run::LogReader::open(env_, run::run_directory(context_, name_));
      if (!opened && opened.error().kind == ErrorKind::not_found) return {};
      if (!opened) return std::unexpected(opened.error());
      reader_.emplace(*std::move(opened));
    }
    return reader_->read(Token{}, [&](const run::LogFrame& frame) {
      const auto at = static_cast<std::size_t>(frame.task.value - 1);
      const std::string label =
          at < tasks_.size() ? tasks_[at].label : fmt::format("{}", frame.task.value);
      observer_.on_output(label, frame.stream == exec::Stream::err, frame.bytes);
    });
  }

  os::Env& env_;
  run::Context& context_;
  std::string name_;
  RunObserver& observer_;
  std::vector<store::TaskRecord> tasks_;
  std::optional<run::LogReader> reader_;
  std::map<TaskNumber, std::pair<Token, bool>> told_;
  std::string state_;
  store::Counts counts_;
  bool changed_ = false;
};

}  // namespace

Result<run::Context> library::open_runs(os::Env& env, const std::string& state_directory) {
  return state_directory.empty() ? run::open_context(env) : run::open_context(env, state_directory);
}

RunObserver::~RunObserver() = default;

Runs::Runs(std::unique_ptr<State> state) : state_(std::move(state)) {}
Runs::Runs(Runs&&) noexcept = default;
Runs& Runs::operator=(Runs&&) noexcept = default;
Runs::~Runs() = default;

namespace {

Result<engine::RunRequest> request_of(const Command& command) {
  if (command.argv.empty())
    return fail(ErrorKind::invalid, "argv: expected a command, got nothing");
  if (command.retries < 0 || command.timeout.count() < 0)
    return fail(ErrorKind::invalid, "retries and timeout: expected at least 0");
  engine::RunRequest request{.command = command.argv,
                             .directory = command.directory,
                             .name = command.name,
                             .environment = command.environment};
  command.resources.each([&](std::string_view resource, std::int64_t amount) {
    request.resources.emplace_back(resource, amount);
  });
  request.retries = command.retries;
  if (command.timeout.count() > 0) request.timeout = command.timeout;
  request.clusters = command.clusters;
  return request;
}

Result<engine::RunRequest> request_of(const std::string& file, const FileOptions& options) {
  engine::RunRequest request{.file = file, .name = options.name};
  if (options.retries < 0 || options.timeout.count() < 0 || options.parallel < 0)
    return fail(ErrorKind::invalid, "retries, timeout and parallel: expected at least 0");
  request.labels.assign(options.labels.begin(), options.labels.end());
  request.parallel = options.parallel;
  request.retries = options.retries;
  if (options.timeout.count() > 0) request.timeout = options.timeout;
  if (options.allow_failures.value_or(0) < 0)
    return fail(ErrorKind::invalid, "allow_failures: expected at least 0");
  request.allow_failures = options.allow_failures;
  request.clusters = options.clusters;
  request.warm_start = options.warm_start;
  request.runs_elsewhere = options.elsewhere;
  request.flow.targets = options.targets;
  request.flow.force = options.force;
  for (const auto& [name, value] : options.set) {
    auto& set = request.flow.set;
    const auto known = std::ranges::find(set, name, &std::pair<std::string, flow::Words>::first);
    if (known == set.end())
      set.emplace_back(name, flow::Words{value});
    else
      known->second.push_back(value);
  }
  return request;
}

}  // namespace

Result<Runs> Runs::open(const RunsOptions& options) {
  auto state = std::make_unique<State>();
  os::Env& env = *state->env;
  BERTH_ASSIGN(state->context, library::open_runs(env, options.state_directory));
  state->state_directory = options.state_directory;
  state->on_note = options.on_note;
  state->context.program =
      options.program.empty() ? env.variable("BERTH_BIN").value_or("berth") : options.program;
  return Runs(std::move(state));
}

Result<std::string> Runs::submit(const Command& command) {
  BERTH_ASSIGN(const auto request, request_of(command));
  return state_->start(request);
}

Result<std::string> Runs::submit_file(const std::string& file, const FileOptions& options) {
  BERTH_ASSIGN(const auto request, request_of(file, options));
  return state_->start(request);
}

Result<std::string> Runs::record(const Command& command, bool elsewhere) {
  BERTH_ASSIGN(auto request, request_of(command));
  request.runs_elsewhere = elsewhere;
  BERTH_ASSIGN(const auto record, state_->record(request));
  return record.name;
}

Result<std::string> Runs::record_file(const std::string& file, const FileOptions& options) {
  BERTH_ASSIGN(const auto request, request_of(file, options));
  BERTH_ASSIGN(const auto record, state_->record(request));
  return record.name;
}

Result<std::vector<Run>> Runs::list() {
  BERTH_ASSIGN(const auto records, state_->context.store->runs());
  std::vector<Run> runs;
  for (const auto& record : records) runs.push_back(library::run_of(state_->context, record));
  return runs;
}

Result<Run> Runs::find(const std::string& name) {
  BERTH_ASSIGN(const auto record, run::find_run(state_->context, name));
  return library::run_of(state_->context, record);
}

Result<std::vector<Task>> Runs::tasks(const std::string& name) {
  BERTH_ASSIGN(const auto record, run::find_run(state_->context, name));
  BERTH_ASSIGN(const auto records, state_->context.store->tasks(record.id));
  std::vector<Task> tasks;
  for (const auto& task : records) tasks.push_back(library::task_of(task));
  return tasks;
}

Result<std::string> Runs::output(const std::string& name, const std::string& task, bool is_error) {
  BERTH_ASSIGN(const auto record, run::find_run(state_->context, name));
  BERTH_ASSIGN(const auto found, state_->context.store->find_task(record.id, task));
  return state_->printed(record, found, is_error ? exec::Stream::err : exec::Stream::out);
}

Result<Run> Runs::follow(const std::string& name, RunObserver& observer) {
  Following following(*state_->env, state_->context, name, observer);
  for (;;) {
    // What is recorded is looked at before the state says that there is no more of it.
    BERTH_ASSIGN(const auto record, run::find_run(state_->context, name));
    Run run = library::run_of(state_->context, record);
    bool goes_on = run.goes_on();
    const Status looked = guarded("the observer", [&] {
      auto status = following.look(record, run);
      goes_on = goes_on && observer.goes_on();
      return status;
    });
    BERTH_TRY(looked);
    if (!goes_on) return run;
    BERTH_TRY(state_->env->wait({}, state_->env->now() + kPollInterval));
  }
}

Result<Run> Runs::wait(const std::string& name, std::chrono::milliseconds most) {
  const Mono until = state_->env->now() + most;
  for (;;) {
    BERTH_ASSIGN(Run run, find(name));
    const Mono now = state_->env->now();
    if (!run.goes_on() || (most > most.zero() && now >= until)) return run;
    BERTH_TRY(state_->env->wait({}, now + kPollInterval));
  }
}

Status Runs::stop(const std::string& name) {
  // A stop of what a dead runner left counts as a stop signal, which is for this call alone.
  os::StopSource source;
  const auto env = os::posix_env(source);
  BERTH_ASSIGN(auto context, library::open_runs(*env, state_->state_directory));
  context.program = state_->context.program;
  BERTH_ASSIGN(const auto unreachable, engine::stop(context, name, state_->note()));
  if (unreachable.empty()) return {};
  return fail(ErrorKind::busy, "{}", run::to_text(unreachable.front(), name));
}

Status Runs::resume(const std::string& name) {
  BERTH_TRY(engine::resume_detached(state_->context, name, {}, state_->note()));
  return {};
}

Status Runs::retry(const std::string& name, Again what) {
  const auto scope = what == Again::failed ? engine::RetryScope::failed
                     : what == Again::all  ? engine::RetryScope::all
                                           : engine::RetryScope::file;
  BERTH_TRY(engine::retry_detached(state_->context, name, scope, {}, state_->note()));
  return {};
}

Result<std::vector<std::string>> Runs::reopen(const std::string& name, bool all) {
  BERTH_ASSIGN(const auto reopened, run::reopen(state_->context, name, all));
  BERTH_ASSIGN(const auto tasks, this->tasks(name));
  std::vector<std::string> labels;
  for (const TaskNumber number : reopened)
    labels.push_back(tasks.at(static_cast<std::size_t>(number.value - 1)).label);
  return labels;
}

Status Runs::remove(const std::string& name) {
  BERTH_ASSIGN(const auto record, run::find_run(state_->context, name));
  BERTH_TRY(engine::check_unused(state_->context, record));
  return run::remove(state_->context, name, run::IfLiving::refuse);
}

Result<std::string> Runs::call(std::string_view method, std::string_view path,
                               std::string_view body) {
  const auto routes = api::all_calls(
      {.program = state_->context.program, .state_directory = state_->state_directory});
  BERTH_ASSIGN(api::Reply reply, api::call(routes, method, path, body));
  return std::move(reply.body);
}

}  // namespace berth
