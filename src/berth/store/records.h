// The stores share these checks of what they are given, and the text forms of records.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "berth/store/store.h"

namespace berth::store {

inline constexpr std::size_t kMostTasks = 1'000'000;
inline constexpr TaskNumber kFirstTask{1};
inline constexpr TaskNumber kLastTask{std::numeric_limits<std::int64_t>::max()};

/// invalid: the run has no name or too many tasks; a parameter comes twice or is not UTF-8. exists:
/// a label comes twice.
Status validate(const NewRun& run);
/// invalid: the change cannot lead to that state.
Status validate(const AttemptEnded& change);
Status validate(const TaskMoved& change);
/// invalid: a parameter comes twice or is not UTF-8.
Status validate(const ParamsSet& change);
/// Checks the added tasks like those of a submission, beside the `tasks` that the run has.
Status validate(const TasksAdded& change, std::int64_t tasks);

inline std::string_view name(exec::Cause cause) {
  return exec::kCauseNames.name(cause);
}
/// The word that the database has for a value of an enumeration.
std::string_view stored_name(RunState state);
template <class Enum>
std::string_view stored_name(Enum value) {
  return name(value);
}

/// Updates the task's record by its next attempt, which is added to those before.
void add_attempt(TaskRecord& task, AttemptRecord attempt);
/// Sets the cause to the one of this name. A runner of an earlier Berth that still runs writes what
/// people read into a store of this schema: "exit 3", "signal 11 (Segmentation fault)". Such a text
/// is understood, too; any other becomes the detail.
void read_cause(std::string_view text, AttemptRecord& attempt);
/// Updates the attempt's record by its end.
void end(AttemptRecord& attempt, const AttemptEnded& change);

std::unexpected<Error> no_run(RunId run);                    // not_found
std::unexpected<Error> no_task(RunId run, TaskNumber task);  // not_found

/// The values as a JSON object, {"lr":"0.1"}. They are as validate() demands.
std::string to_json(const Values& values);
/// The inverse of to_json(). corrupt: the text is not one flat object of strings.
Result<Values> values_from_json(std::string_view text);

}  // namespace berth::store
