// What the record of a run says, and how every client names runs and tasks.
#pragma once

#include <string>
#include <string_view>

#include "berth/exec/cause.h"
#include "berth/experiment/program.h"
#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::engine {

/// A run such as "digits-3", or one of its tasks such as "digits-3/17".
struct TaskPath {
  std::string run;
  std::string task;  ///< "" means the whole run.
};
TaskPath parse_task_path(std::string_view text);

/// Why an interrupted run was interrupted, and the command that goes on with it.
std::string interrupted_text(const store::RunRecord& run);

/// The program that a run of trials was submitted with; an empty one for a flow.
Result<experiment::Program> program_of(const store::RunRecord& run);
/// The same for what is shown; an empty one for a run that cannot be read.
experiment::Program shown_program(const store::RunRecord& run);

/// Why a task, an attempt or the task of an ended attempt came to its end: "exit 3", "time limit",
/// "signal 11 (Segmentation fault)"; "" where it did not end.
template <class Record>
std::string cause_text(const Record& of) {
  return exec::describe(of.cause, of.exit_code, of.signal);
}
/// How many tasks are in which state, such as "38 done, 1 failed, 1 waiting".
std::string counts_text(const store::Counts& counts);
/// The same with the error of the run, unless the counts say it: "3 waiting; no space is left".
std::string counts_and_error(const store::RunRecord& run);

}  // namespace berth::engine
