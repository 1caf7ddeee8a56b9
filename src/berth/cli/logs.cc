// berth logs: what the tasks printed, then and as it comes.
#include <cstdio>

#include "berth/cli/commands.h"
#include "berth/cli/table.h"
#include "berth/run/log_file.h"

namespace berth::cli {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(100);

/// Of one task its bytes as they were; of a whole run each line behind its task's label.
class Printer {
 public:
  explicit Printer(bool labelled) : labelled_(labelled) {}

  void show(const run::LogFrame& frame, const std::string& label) {
    std::FILE* to = frame.stream == exec::Stream::out ? stdout : stderr;
    if (!labelled_) {
      std::fwrite(frame.bytes.data(), 1, frame.bytes.size(), to);
    } else {
      std::string& partial = partial_[{frame.token, frame.stream}].second;
      partial_[{frame.token, frame.stream}].first = label;
      partial += frame.bytes;
      for (std::size_t end = 0; (end = partial.find('\n')) != std::string::npos;) {
        fmt::print(to, "[{}] {}\n", label, partial.substr(0, end));
        partial.erase(0, end + 1);
      }
    }
    std::fflush(to);
  }

  void finish() {
    for (auto& [key, line] : partial_)
      if (!line.second.empty())
        fmt::print(key.second == exec::Stream::out ? stdout : stderr, "[{}] {}\n", line.first,
                   line.second);
    partial_.clear();
  }

 private:
  bool labelled_;
  std::map<std::pair<Token, exec::Stream>, std::pair<std::string, std::string>> partial_;
};

/// Whether more may still be printed.
Result<bool> goes_on(os::Env& env, run::Site& site, const Target& target) {
  BERTH_ASSIGN(const auto record, site.store->find_run(target.run));
  if (state_now(env, record) != "running") return false;
  if (target.task.empty()) return true;
  BERTH_ASSIGN(const auto task, find_task(site, record, target.task));
  return !store::final(task.state);
}

}  // namespace

Result<int> logs_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  Target target = parse_target(arguments.target);
  BERTH_ASSIGN(const auto record, site.store->find_run(target.run));
  if (record.kind == "command" && target.task.empty()) target.task = "1";
  BERTH_ASSIGN(const auto tasks, site.store->tasks(record.id));
  TaskNumber only;
  if (!target.task.empty()) {
    BERTH_ASSIGN(const auto task, find_task(site, record, target.task));
    only = task.number;
  }
  Printer printer(only.value == 0);
  std::optional<run::LogReader> reader;
  for (;;) {
    BERTH_ASSIGN(const bool more, goes_on(env, site, target));  // before reading: nothing is missed
    if (!reader) {
      auto opened = run::LogReader::open(env, run::run_directory(site, record.name));
      if (opened) reader.emplace(*std::move(opened));
    }
    if (reader) {
      BERTH_ASSIGN(const auto frames, reader->read(Token{}));
      for (const auto& frame : frames)
        if (only.value == 0 || frame.task == only)
          printer.show(frame, tasks[static_cast<std::size_t>(frame.task.value - 1)].label);
    }
    if (!arguments.follow || !more) break;
    BERTH_TRY(env.wait({}, env.now() + kLookEvery));
  }
  printer.finish();
  return 0;
}

}  // namespace berth::cli
