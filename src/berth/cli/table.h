// Text tables and the few things that all commands print alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/experiment/program.h"
#include "berth/os/env.h"
#include "berth/run/site.h"
#include "berth/store/store.h"

namespace berth::cli {

/// How many rows a summary has; another command, or --json, has all.
inline constexpr std::size_t kMostRows = 20;

/// Columns padded to their widest cell, two blanks between; numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "digits-3" or "digits-3/17".
struct Target {
  std::string run;
  std::string task;  // "" for the whole run
};
Target parse_target(std::string_view text);

/// not_found: in words that name the run.
Result<store::TaskRecord> find_task(run::Site& site, const store::RunRecord& run,
                                    const std::string& label);

/// Its runner is a process of another machine, as far as the store knows.
bool drives_elsewhere(os::Env& env, const store::RunRecord& run);
/// What a run is now: its recorded state, or "interrupted" when its runner died.
std::string state_now(os::Env& env, const store::RunRecord& run);
/// Of a run that is interrupted: why, and the command that goes on.
std::string interrupted_text(const store::RunRecord& run);

/// Of a trial that is done: what the goal is about.
std::optional<double> score_of(const store::TaskRecord& task, const experiment::Program& program);
/// The done task with the best last value of the goal's metric; nullptr when there is none.
const store::TaskRecord* best_task(const std::vector<store::TaskRecord>& tasks,
                                   const experiment::Program& program);
/// "best digits-3/17  accuracy 0.983  lr 0.19  width 64".
std::string best_line(const store::RunRecord& run, const store::TaskRecord& task,
                      const experiment::Program& program);
/// What a run of trials was submitted as; of a flow's nothing is said here.
Result<experiment::Program> program_of(const store::RunRecord& run);
/// Why a task, an attempt or the task of an ended attempt came to its end: "exit 3", "time limit",
/// "signal 11 (Segmentation fault)"; "" where it did not.
template <class Record>
std::string cause_text(const Record& of) {
  return exec::describe(of.cause, of.exit_code, of.signal);
}
/// "38 done, 1 failed, 1 waiting".
std::string counts_text(const store::Counts& counts);

/// "0-3,8".
std::string ranges_text(const std::vector<int>& numbers);

void print(std::string_view text);  // stdout
/// The errno that took some of what was printed (a full disk, say), or 0. Nobody listening is none.
int print_errno();
void note_failed_print(int number);       // whoever reads no more (EPIPE) is no failure
void print_error(std::string_view text);  // stderr

}  // namespace berth::cli
