// berth logs: what the tasks printed, then and as it comes.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/visible.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/task_output.h"

namespace berth::cli {
namespace {

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
class Printer final : public engine::OutputObserver {
 public:
  /// `tail` limits what both streams print before on_caught_up(); nullopt: no limit.
  Printer(const LogsOptions& options, std::optional<Tail> tail)
      : together_(options.together),
        announces_attempts_(options.attempt == 0),
        tail_(tail),
        out_{.is_shown = !options.raw && ::isatty(STDOUT_FILENO) == 1, .visible = {}},
        err_{.is_shown = !options.raw && ::isatty(STDERR_FILENO) == 1, .visible = {}} {}

  Status on_source(const engine::OutputSource& source) override {
    labelled_ = !source.has_one_task;
    has_attempts_ = source.has_attempts;
    return {};
  }

  void on_part(const engine::OutputPart& part) override {
    if (!labelled_) {
      if (announces_attempts_ && part.token != shown_ && (has_attempts_ || !part.is_first_attempt))
        print_error(fmt::format("({})\n", part.attempt));
      shown_ = part.token;
      return put(part.stream, part.bytes);
    }
    const std::string label = part.is_first_attempt ? std::string(part.task)
                                                    : fmt::format("{} {}", part.task, part.attempt);
    Line& line = partial_[{part.token, part.stream}];
    line.label = label;
    std::string_view rest = part.bytes;
    for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
      line.text += rest.substr(0, end);
      put(part.stream, fmt::format("[{}] {}\n", label, line.text));
      line.text.clear();
      rest.remove_prefix(end + 1);
    }
    line.text += rest;
  }

  void finish() {
    for (auto& [key, line] : partial_)
      if (!line.text.empty()) put(key.second, fmt::format("[{}] {}\n", line.label, line.text));
    partial_.clear();
    on_caught_up();
  }

  /// Prints the end of the output so far; later output is printed immediately.
  void on_caught_up() override {
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

  bool together_, announces_attempts_;
  bool labelled_ = false, has_attempts_ = false;
  Token shown_;
  std::optional<Tail> tail_;
  std::deque<std::pair<exec::Stream, std::string>> kept_;
  std::size_t kept_size_ = 0;  // lines or bytes
  Channel out_, err_;
  std::map<std::pair<Token, exec::Stream>, Line> partial_;
};

Result<int> logs(os::Env& env, const LogsOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto tail, parse_tail(options.tail));
  Printer printer(options, tail);
  BERTH_TRY(engine::read_output(
      context, {.path = options.path, .follow = options.follow, .attempt = options.attempt},
      printer));
  printer.finish();
  return 0;
}

}  // namespace

Command logs_command() {
  return command("logs", "Print the output of tasks", logs);
}

}  // namespace berth::cli
