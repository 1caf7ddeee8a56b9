// berth logs: what the tasks printed, then and as it comes.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/visible.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/run_record.h"
#include "berth/engine/run_state.h"
#include "berth/run/find_run.h"
#include "berth/run/log_file.h"

namespace berth::cli {
namespace {

constexpr Duration kFollowPollInterval = std::chrono::milliseconds(100);

struct LogsOptions {
  std::string path;
  bool follow = false, raw = false, together = false;
  int attempt = 0;
  std::string tail;

  void add_to(Options& options) {
    add_run_or_last(options, path, "RUN[/TASK]", "Run or task, such as digits-3/17");
    options.flag("-f,--follow", follow, "Print new output until the run or the task ends");
    options
        .value("-n,--tail", tail,
               "Print only the last lines (-n 20) or bytes (-n 200K) of the output so far")
        .named("LINES|SIZE");
    options.value("--attempt", attempt, "Print only the Nth attempt of the task")
        .between(1, 1'000'000);
    options.flag("--together", together, "Print standard error to standard output, too");
    options.flag("--raw", raw, "Do not escape control characters on a terminal");
    options.footer(
        "Examples:\n"
        "  berth logs -f              the latest run\n"
        "  berth logs -n 20 digits-3/17");
  }
};

/// The end of the output: this many lines or bytes.
struct Tail {
  std::size_t size = 0;
  bool in_lines = false;
};

/// "20" is a number of lines, "200K" one of bytes; nullopt for "".
Result<std::optional<Tail>> parse_tail(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text.find_first_not_of("0123456789") == text.npos && text.size() <= 9)
    return Tail{static_cast<std::size_t>(std::stoul(text)), true};
  const auto bytes = parse_bytes(text);
  if (!bytes)
    return fail(ErrorKind::usage,
                "--tail: expected lines such as 20, or a size such as 200K, got '{}'", clip(text));
  return Tail{static_cast<std::size_t>(*bytes), false};
}

/// Prints the bytes of one task as they were, and those of a whole run line by line behind the
/// label of their task. On a terminal control characters are made visible, unless `raw`.
class Printer {
 public:
  /// `tail` limits what both streams print before show_kept(); nullopt: no limit.
  Printer(const LogsOptions& options, bool labelled, std::optional<Tail> tail)
      : labelled_(labelled),
        together_(options.together),
        tail_(tail),
        out_{.is_shown = !options.raw && ::isatty(STDOUT_FILENO) == 1, .visible = {}},
        err_{.is_shown = !options.raw && ::isatty(STDERR_FILENO) == 1, .visible = {}} {}

  void show(const run::LogFrame& frame, const std::string& label) {
    if (!labelled_) return put(frame.stream, frame.bytes);
    Line& line = partial_[{frame.token, frame.stream}];
    line.label = label;
    std::string_view rest = frame.bytes;
    for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
      line.text += rest.substr(0, end);
      put(frame.stream, fmt::format("[{}] {}\n", label, line.text));
      line.text.clear();
      rest.remove_prefix(end + 1);
    }
    line.text += rest;
  }

  void finish() {
    for (auto& [key, line] : partial_)
      if (!line.text.empty()) put(key.second, fmt::format("[{}] {}\n", line.label, line.text));
    partial_.clear();
    show_kept();
  }

  /// Prints the last of what was shown so far; what comes from now on is printed at once.
  void show_kept() {
    tail_.reset();
    while (!kept_.empty()) {
      put(kept_.front().first, kept_.front().second);
      kept_.pop_front();
    }
  }

 private:
  struct Line {
    std::string label, text;
  };
  struct Channel {
    bool is_shown = false;
    Visible visible;
    std::string shown(std::string_view text) {
      return is_shown ? visible(text) : std::string(text);
    }
  };
  void put(exec::Stream stream, std::string_view text) {
    if (tail_) return keep(stream, text);
    stream == exec::Stream::out || together_ ? print_exact(out_.shown(text))
                                             : print_exact_error(err_.shown(text));
  }

  void keep(exec::Stream stream, std::string_view text) {
    kept_.emplace_back(stream, text);
    kept_size_ += size_of(text);
    // The end of an unfinished line is a line, too.
    const bool unfinished = tail_->in_lines && !text.ends_with('\n');
    while (kept_size_ + (unfinished ? 1 : 0) > tail_->size && !kept_.empty()) {
      std::string& first = kept_.front().second;
      std::size_t over = std::min(kept_size_ - std::min(kept_size_, tail_->size), first.size());
      if (tail_->in_lines) over = std::min(first.find('\n'), first.size() - 1) + 1;
      kept_size_ -= size_of(std::string_view(first).substr(0, over));
      first.erase(0, over);
      if (first.empty()) kept_.pop_front();
    }
  }
  std::size_t size_of(std::string_view text) const {
    return tail_->in_lines ? static_cast<std::size_t>(std::ranges::count(text, '\n')) : text.size();
  }

  bool labelled_, together_;
  std::optional<Tail> tail_;
  std::deque<std::pair<exec::Stream, std::string>> kept_;
  std::size_t kept_size_ = 0;  // lines or bytes
  Channel out_, err_;
  std::map<std::pair<Token, exec::Stream>, Line> partial_;
};

/// Whether more may still be printed.
Result<bool> goes_on(os::Env& env, run::Context& context, const engine::TaskPath& path) {
  BERTH_ASSIGN(const auto record, run::find_run(context, path.run));
  if (!engine::is_under_way(engine::state_now(env, record))) return false;
  if (path.task.empty()) return true;
  BERTH_ASSIGN(const auto task, run::find_task(context, record, path.task));
  return !store::final(task.state);
}

/// The tasks of a run and the numbers of their attempts, which become more while the run goes on.
class Tasks {
 public:
  /// `is_written`: what stands in the log is recorded within moments.
  Tasks(run::Context& context, const store::RunRecord& run, bool is_written)
      : context_(context), run_(run), is_written_(is_written) {}

  /// nullptr: nobody knows of it.
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
  /// The log is written before the record is.
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

  run::Context& context_;
  const store::RunRecord& run_;
  const bool is_written_;
  std::vector<store::TaskRecord> tasks_;
  std::map<Token, std::int64_t> attempts_;
};

Result<int> logs(os::Env& env, const LogsOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  engine::TaskPath path = engine::parse_task_path(options.path);
  BERTH_ASSIGN(const auto record, run::find_run(context, path.run));
  if (record.kind == "command" && path.task.empty()) path.task = "1";
  Tasks tasks(context, record, engine::is_under_way(engine::state_now(env, record)));
  TaskNumber only;
  bool is_repeated = false;
  if (!path.task.empty()) {
    BERTH_ASSIGN(const auto task, run::find_task(context, record, path.task));
    only = task.number;
    BERTH_ASSIGN(const auto attempts, context.store->attempts(record.id, only));
    is_repeated = attempts.size() > 1;
    if (options.attempt > std::ssize(attempts))
      return fail(ErrorKind::not_found, "{}/{} had {} attempts", record.name, path.task,
                  attempts.size());
  } else if (options.attempt > 0) {
    return fail(ErrorKind::usage, "--attempt: expected RUN/TASK, got '{}'", options.path);
  }
  BERTH_ASSIGN(const auto tail, parse_tail(options.tail));
  Token shown;
  Printer printer(options, only.value == 0, tail);
  const auto show = [&](const run::LogFrame& frame) -> Status {
    if (only.value != 0 && frame.task != only) return {};
    BERTH_ASSIGN(const auto* task, tasks.find(frame.task));
    if (task == nullptr) return {};
    BERTH_ASSIGN(const std::int64_t attempt, tasks.attempt(*task, frame.token));
    if (options.attempt > 0 && attempt != options.attempt) return {};
    const std::string which = attempt > 0 ? fmt::format("attempt {}", attempt) : "lost attempt";
    if (only.value != 0 && options.attempt == 0 && frame.token != shown &&
        (is_repeated || attempt != 1))
      print_error(fmt::format("({})\n", which));
    shown = frame.token;
    printer.show(frame, attempt == 1 ? task->label : task->label + " " + which);
    return {};
  };
  std::optional<run::LogReader> reader;
  for (;;) {
    BERTH_ASSIGN(const bool more,
                 goes_on(env, context, path));  // before reading: nothing is missed
    if (!reader) {
      auto opened = run::LogReader::open(env, run::run_directory(context, record.name));
      if (opened) reader.emplace(*std::move(opened));
    }
    if (reader) {
      Status status;
      BERTH_TRY(reader->read(Token{}, [&](const run::LogFrame& frame) {
        if (status) status = show(frame);
      }));
      BERTH_TRY(status);
    }
    if (!options.follow || !more) break;
    printer.show_kept();
    BERTH_TRY(env.wait({}, env.now() + kFollowPollInterval));
  }
  printer.finish();
  return 0;
}

}  // namespace

Command logs_command() {
  return command("logs", "Print the output of tasks", logs);
}

}  // namespace berth::cli
