// What the stores share: what a submission must fulfil, and parameters as JSON text.
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

/// invalid: no name, too many tasks, a parameter twice or not UTF-8; exists: a label twice.
Status validate(const NewRun& run);
/// invalid: a state to which the change cannot lead.
Status validate(const AttemptEnded& change);
Status validate(const TaskMoved& change);
/// invalid: as of a submission, with the tasks that there are; exists: a label twice.
Status validate(const TasksAdded& change, std::int64_t tasks);

/// Adds what the task's next attempt says of the task.
void add_attempt(TaskRecord& task, AttemptRecord attempt);
void end(AttemptRecord& attempt, const AttemptEnded& change);

std::unexpected<Error> no_run(RunId run);                    // not_found
std::unexpected<Error> no_task(RunId run, TaskNumber task);  // not_found

/// {"lr":"0.1"}; `values` as validate() wants them.
std::string to_json(const Values& values);
/// The inverse; corrupt when the text is not one flat object of strings.
Result<Values> values_from_json(std::string_view text);

}  // namespace berth::store
