// berth/run.h: the `berth` program submits and drives, the store and the logs say what became of
// it.
#include "berth/run.h"

#include <algorithm>
#include <array>
#include <map>

#include "berth/base/document.h"
#include "berth/base/guarded.h"
#include "berth/base/text.h"
#include "berth/library/run_state.h"
#include "berth/library/runs_state.h"
#include "berth/run/log_file.h"
#include "berth/run/runner.h"

namespace berth {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr std::size_t kMostSaid = 16U << 20;  // bytes that the program says

struct Said {
  int code = 0;
  std::string out, err;
};

/// What a program prints until it ends.
Result<Said> run_program(os::Env& env, const os::SpawnSpec& spec) {
  BERTH_ASSIGN(auto child, env.spawn(spec));
  Said said;
  std::array<std::string*, 2> texts{&said.out, &said.err};
  std::array<os::Fd*, 2> ends{&child.out, &child.err};
  os::ReadBuffer buffer;
  for (;;) {
    std::vector<os::Watch> watches{{.fd = child.exited.number()}};
    for (const os::Fd* end : ends)
      if (*end) watches.push_back({.fd = end->number()});
    BERTH_TRY(env.wait(watches, std::nullopt));
    for (std::size_t i = 0; i < ends.size(); ++i) {
      while (*ends[i]) {
        BERTH_ASSIGN(const auto got, env.read_some(*ends[i], buffer));
        if (!got) break;
        if (*got == 0 || texts[i]->size() > kMostSaid)
          ends[i]->reset();
        else
          texts[i]->append(buffer.data(), *got);
      }
    }
    // A runner that was started in the background may hold the pipes open.
    if (!watches.front().ready) continue;
    BERTH_ASSIGN(const auto status, env.reap(child));
    if (!status) continue;
    said.code = status->signal != 0 ? 128 + status->signal : status->code;
    return said;
  }
}

/// By the exit codes of the command line.
ErrorKind kind_of(int code) {
  switch (code) {
    case 2: return ErrorKind::invalid;
    case 3: return ErrorKind::busy;
    case 130: return ErrorKind::interrupted;
    default: return ErrorKind::io;
  }
}

/// "1.5", "1073741824": as the options take amounts.
std::string plain_amount(std::string_view resource, std::int64_t amount) {
  if (measure(resource) != Measure::milli) return fmt::format("{}", amount);
  return fmt::format("{}.{:03}", amount / 1000, amount % 1000);
}

void add_amounts(const Resources& resources, std::vector<std::string>& words) {
  resources.each([&](std::string_view resource, std::int64_t amount) {
    const std::string text = plain_amount(resource, amount);
    if (kKnownNames.value(resource)) {
      std::string option = fmt::format("--{}", resource);
      std::ranges::replace(option, '_', '-');
      words.insert(words.end(), {std::move(option), text});
    } else {
      words.insert(words.end(), {"--resource", fmt::format("{}={}", resource, text)});
    }
  });
}

bool has_ended(store::TaskState state) {
  return store::final(state) || state == store::TaskState::stopped;
}

}  // namespace

Run library::run_of(const run::Context& context, const store::RunRecord& record) {
  const store::Counts& counts = record.counts;
  Run run{.name = record.name,
          .kind = record.kind,
          .state = state_now(*context.env, record, context.state_directory),
          .error = record.error,
          .counts = {counts.waiting, counts.running, counts.done, counts.cached, counts.skipped,
                     counts.failed, counts.stopped},
          .created = std::chrono::milliseconds(to_ms(record.created)),
          .ended = {}};
  if (record.ended) run.ended = std::chrono::milliseconds(to_ms(*record.ended));
  return run;
}

Result<std::string> Runs::State::berth(const std::vector<std::string>& words,
                                       const Command& over) const {
  os::SpawnSpec spec;
  spec.argv = {program};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  auto replace = over.environment;
  if (!state_directory.empty()) replace.emplace_back("BERTH_DB", context.state_directory);
  for (auto& [name, value] : env->environment())
    if (std::ranges::find(replace, name, &std::pair<std::string, std::string>::first) ==
        replace.end())
      spec.environment.emplace_back(name, value);
  spec.environment.insert(spec.environment.end(), replace.begin(), replace.end());
  BERTH_ASSIGN(spec.directory, env->real_path(over.directory.empty() ? "." : over.directory));
  BERTH_ASSIGN(auto said, run_program(*env, spec));
  if (said.code == 0) return std::move(said.out);
  std::string_view text = trim(said.err);
  if (text.starts_with("berth: ")) text.remove_prefix(7);
  return fail(
      kind_of(said.code), "{}",
      text.empty() ? fmt::format("{} ended with {}", program, said.code) : std::string(text));
}

Result<std::string> Runs::State::start(const std::vector<std::string>& words,
                                       const Command& over) const {
  BERTH_ASSIGN(const std::string json, berth(words, over));
  BERTH_ASSIGN(const Field said, Field::parse(json, "berth run --json"));
  BERTH_ASSIGN(const Field run, said.get("run"));
  BERTH_ASSIGN(const Field id, run.get("id"));
  return id.text();
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

Result<Runs> Runs::open(const RunsOptions& options) {
  auto state = std::make_unique<State>();
  os::Env& env = *state->env;
  BERTH_ASSIGN(state->context, library::open_runs(env, options.state_directory));
  state->state_directory = options.state_directory;
  state->program =
      options.program.empty() ? env.variable("BERTH_BIN").value_or("berth") : options.program;
  return Runs(std::move(state));
}

Result<std::string> Runs::submit(const Command& command) {
  if (command.argv.empty())
    return fail(ErrorKind::invalid, "argv: expected a command, got nothing");
  if (command.retries < 0 || command.timeout.count() < 0)
    return fail(ErrorKind::invalid, "retries and timeout: expected at least 0");
  std::vector<std::string> words{"--json", "run", "--detach"};
  if (!command.name.empty()) words.insert(words.end(), {"--name", command.name});
  add_amounts(command.resources, words);
  if (command.retries > 0)
    words.insert(words.end(), {"--retries", fmt::format("{}", command.retries)});
  if (command.timeout.count() > 0)
    words.insert(words.end(), {"--timeout", fmt::format("{}ms", command.timeout.count())});
  words.emplace_back("--");
  words.insert(words.end(), command.argv.begin(), command.argv.end());
  return state_->start(words, command);
}

Result<std::string> Runs::submit_file(const std::string& file,
                                      const std::vector<std::string>& options) {
  // The file goes first: an option that takes a list would take it too.
  std::vector<std::string> words{"--json", "run", "--detach", file};
  words.insert(words.end(), options.begin(), options.end());
  return state_->start(words, {});
}

Result<std::vector<Run>> Runs::list() {
  BERTH_ASSIGN(const auto records, state_->context.store->runs());
  std::vector<Run> runs;
  for (const auto& record : records) runs.push_back(library::run_of(state_->context, record));
  return runs;
}

Result<Run> Runs::find(const std::string& name) {
  BERTH_ASSIGN(const auto record, state_->context.store->find_run(name));
  return library::run_of(state_->context, record);
}

Result<std::vector<Task>> Runs::tasks(const std::string& name) {
  BERTH_ASSIGN(const auto record, state_->context.store->find_run(name));
  BERTH_ASSIGN(const auto records, state_->context.store->tasks(record.id));
  std::vector<Task> tasks;
  for (const auto& task : records) tasks.push_back(library::task_of(task));
  return tasks;
}

Result<std::string> Runs::output(const std::string& name, const std::string& task, bool is_error) {
  BERTH_ASSIGN(const auto record, state_->context.store->find_run(name));
  BERTH_ASSIGN(const auto found, state_->context.store->find_task(record.id, task));
  return state_->printed(record, found, is_error ? exec::Stream::err : exec::Stream::out);
}

Result<Run> Runs::follow(const std::string& name, RunObserver& observer) {
  Following following(*state_->env, state_->context, name, observer);
  for (;;) {
    // What is recorded is looked at before the state says that there is no more of it.
    BERTH_ASSIGN(const auto record, state_->context.store->find_run(name));
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
  BERTH_TRY(state_->berth({"stop", name}));
  return {};
}

Status Runs::resume(const std::string& name) {
  BERTH_TRY(state_->berth({"resume", "--detach", name}));
  return {};
}

Status Runs::retry(const std::string& name, Again what) {
  std::vector<std::string> words{"retry", "--detach"};
  if (what == Again::all) words.emplace_back("--all");
  if (what == Again::file) words.emplace_back("--file");
  words.push_back(name);
  BERTH_TRY(state_->berth(words));
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
  BERTH_TRY(state_->berth({"rm", name}));
  return {};
}

}  // namespace berth
