// berth logs: what the tasks printed, then and as it comes.
#include <unistd.h>

#include "berth/base/visible.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/engine/context.h"
#include "berth/render/runs/task_output.h"

namespace berth::cli {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(100);

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

/// Prints to standard output and standard error. On a terminal control characters are made visible,
/// unless --raw is given.
class Printer {
 public:
  explicit Printer(const LogsOptions& options)
      : is_together_(options.together),
        out_{.is_shown = !options.raw && ::isatty(STDOUT_FILENO) == 1, .visible = {}},
        err_{.is_shown = !options.raw && ::isatty(STDERR_FILENO) == 1, .visible = {}} {}

  void put(exec::Stream stream, std::string_view text) {
    stream == exec::Stream::out || is_together_ ? print_exact(out_.shown(text))
                                                : print_exact_error(err_.shown(text));
  }

 private:
  struct Channel {
    bool is_shown = false;
    Visible visible;
    std::string shown(std::string_view text) {
      return is_shown ? visible(text) : std::string(text);
    }
  };
  bool is_together_;
  Channel out_, err_;
};

Result<int> logs(os::Env& env, const LogsOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto tail, render::parse_tail(options.tail));
  BERTH_ASSIGN(auto reader, engine::OutputReader::open(context, {options.path, options.attempt}));
  Printer printer(options);
  render::OutputText text(reader.source(), tail, [&](exec::Stream stream, std::string_view part) {
    printer.put(stream, part);
  });
  if (options.attempt == 0)
    text.on_attempt = [](std::string_view name) { print_error(fmt::format("({})\n", name)); };
  for (;;) {
    BERTH_ASSIGN(const bool grows, reader.is_growing());  // before reading: nothing is missed
    for (bool has_more = true; has_more;) {
      BERTH_ASSIGN(has_more, reader.read_some([&](const auto& part) { text.add(part); }));
    }
    if (!options.follow || !grows) break;
    text.put_end();
    BERTH_TRY(env.wait({}, env.now() + kPollInterval));
  }
  text.finish();
  return 0;
}

}  // namespace

Command logs_command() {
  return command("logs", "Print the output of tasks", logs);
}

}  // namespace berth::cli
