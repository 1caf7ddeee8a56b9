#include "berth/cli/table.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/experiment/space.h"

namespace berth::cli {
namespace {

/// Characters as a terminal counts them, near enough: UTF-8 continuation bytes take no room.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

int failed_print = 0;  // an errno

bool numeric(std::string_view text) {
  return text.empty() || text == "-" || parse_number(text).has_value();
}

}  // namespace

std::string Table::text() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns);
  std::vector<bool> right(columns, true);
  for (std::size_t row = 0; row < rows_.size(); ++row)
    for (std::size_t column = 0; column < columns; ++column) {
      widths[column] = std::max(widths[column], width(rows_[row][column]));
      if (row > 0 && !numeric(rows_[row][column])) right[column] = false;
    }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t column = 0; column < columns; ++column) {
      const std::string pad(widths[column] - width(row[column]), ' ');
      line += right[column] ? pad + row[column] : row[column] + pad;
      if (column + 1 < columns) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

Target parse_target(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

Result<store::TaskRecord> find_task(run::Site& site, const store::RunRecord& run,
                                    const std::string& label) {
  auto task = site.store->find_task(run.id, label);
  if (!task && task.error().kind == ErrorKind::not_found)
    return fail(ErrorKind::not_found, "{} has no task '{}'; see berth show {}", run.name,
                clip(label), run.name);
  return task;
}

bool drives_elsewhere(os::Env& env, const store::RunRecord& run) {
  return run.state == store::RunState::running && !run.runner_host.empty() &&
         run.runner_host != env.host_name();
}

std::string interrupted_text(const store::RunRecord& run) {
  return fmt::format("{}; go on with: berth resume {}",
                     run.error.empty() ? "its runner died" : "it could not go on: " + run.error,
                     run.name);
}

std::string state_now(os::Env& env, const store::RunRecord& run) {
  // Whether a process of another machine lives is not known here.
  if (drives_elsewhere(env, run)) return std::string(store::name(run.state));
  const bool open = run.state == store::RunState::running || run.state == store::RunState::waiting;
  // A run is submitted and then taken over by the same process, within milliseconds.
  constexpr Duration kBetween = std::chrono::seconds(5);
  const bool lost = run.runner_pid != 0
                        ? !env.alive({static_cast<pid_t>(run.runner_pid), run.runner_started_at})
                        : env.wall() - run.created > kBetween;
  if (open && lost) return "interrupted";
  return std::string(store::name(run.state));
}

std::optional<double> score_of(const store::TaskRecord& task, const experiment::Program& program) {
  if (!program.goal || task.state != store::TaskState::done) return std::nullopt;
  return experiment::score(*program.goal, task.metrics);
}

const store::TaskRecord* best_task(const std::vector<store::TaskRecord>& tasks,
                                   const experiment::Program& program) {
  const store::TaskRecord* best = nullptr;
  double best_score = 0;
  for (const auto& task : tasks) {
    const auto score = score_of(task, program);
    if (!score) continue;
    const bool better =
        best == nullptr || (program.goal->maximize ? *score > best_score : *score < best_score);
    if (!better) continue;
    best = &task;
    best_score = *score;
  }
  return best;
}

std::string best_line(const store::RunRecord& run, const store::TaskRecord& task,
                      const experiment::Program& program) {
  std::string line = fmt::format("best {}/{}  {} {:.6g}", run.name, task.label,
                                 program.goal->metric, score_of(task, program).value_or(0));
  for (const auto& goal : program.further_goals)
    for (const auto& [name, value] : task.metrics)
      if (name == goal.metric) line += fmt::format("  {} {:.6g}", name, value);
  for (const auto& [name, value] : task.params) line += fmt::format("  {} {}", name, clip(value));
  return line + "\n";
}

Result<experiment::Program> program_of(const store::RunRecord& run) {
  if (run.kind == "flow") return experiment::Program{};
  return experiment::from_json_text(run.spec_json);
}

std::string counts_text(const store::Counts& counts) {
  const std::pair<std::int64_t, std::string_view> parts[] = {
      {counts.done, "done"},      {counts.cached, "cached"},   {counts.skipped, "skipped"},
      {counts.failed, "failed"},  {counts.running, "running"}, {counts.waiting, "waiting"},
      {counts.stopped, "stopped"}};
  std::string text;
  for (const auto& [count, state] : parts)
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return text.empty() ? "nothing" : text;
}

std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) note_failed_print(errno);
}

void note_failed_print(int number) {
  if (number != EPIPE && number != EBADF) failed_print = number;
}

int print_errno() {
  return failed_print;
}

void print_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace berth::cli
