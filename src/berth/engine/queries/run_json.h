// Runs, tasks and what is known of them as JSON documents, as every client gives them to programs.
// Their shapes are stable; each is one line with "version": 1 and ends with a newline.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/queries/comparison.h"
#include "berth/engine/queries/failures.h"
#include "berth/engine/queries/run_explanation.h"
#include "berth/engine/queries/shown_run.h"
#include "berth/experiment/program.h"
#include "berth/store/store.h"

namespace berth::engine {

/// What to_json() has written of resources; none of what is not that.
Resources resources_of_json(std::string_view text);
/// How much of each resource was held for how long, in core-minutes, byte-minutes and so on.
std::vector<std::pair<std::string, double>> resource_minutes(const std::vector<store::Usage>& used);

/// The list of runs: {"version":1,"runs":[{…}]}.
std::string runs_json(const std::vector<ShownRun>& runs);
/// A run and its tasks: {"version":1,"run":{…},"goals":[{"metric","direction"}],
/// "constraints":[texts],"space":{NAME:{"min","max","scale"} or {"choices"}},"front":[ids],
/// "tasks":[{…}],"failures":[{…}]}. The front is that of several goals, and empty with one;
/// "broken" of a task are the constraints that it breaks. The front is that of `all` where it is
/// given, else of `tasks`.
std::string show_json(const ShownRun& run, const std::vector<const store::TaskRecord*>& tasks,
                      const std::vector<const store::TaskRecord*>* all = nullptr);
std::string show_json(const ShownRun& run, const std::vector<store::TaskRecord>& tasks);
/// One task, in the shape that it has in show_json().
std::string task_json(const store::RunRecord& run, const store::TaskRecord& task,
                      const experiment::Program& program);
/// One task as in show_json(), and "attempts_made": [{…}], "why": text, "because": [texts],
/// "command", "directory" and "last_lines".
std::string why_json(const store::RunRecord& run, const store::TaskRecord& task,
                     const std::vector<store::AttemptRecord>& attempts, const std::string& why,
                     const std::vector<std::string>& because, const run::TaskReport& report);

/// A whole run: {"version":1,"run":{…},"why":text,"waiting":[{"reason","count","tasks":[ids]}],
/// "failed":[{"cause","detail","count","tasks":[ids]}],"exit_code"}.
std::string why_run_json(const RunExplanation& run);

/// A comparison: {"version":1,"metric","direction","runs":[{…,"best":{task},…}],"shared":[{…}]}.
std::string compare_json(const Comparison& comparison);

}  // namespace berth::engine
