#include "berth/run/state/task_times.h"

#include <algorithm>

#include "berth/base/units.h"
#include "berth/experiment/program.h"
#include "berth/run/flows/flow_run.h"

namespace berth::run {
namespace {

using Ended = std::map<std::string, std::vector<Duration>, std::less<>>;

/// How long the tasks took that are done, by step.
Ended ended_of(bool is_flow, std::span<const store::TaskRecord> tasks) {
  Ended ended;
  for (const auto& task : tasks)
    if (task.state == store::TaskState::done && task.started && task.ended)
      ended[std::string(step_of(is_flow, task.label))].push_back(
          std::max(Duration{}, *task.ended - *task.started));
  for (auto& [step, times] : ended) std::ranges::sort(times);
  return ended;
}

/// The time limits, by step.
std::map<std::string, Duration> limits_of(const store::RunRecord& run) {
  std::map<std::string, Duration> limits;
  if (run.kind != "flow") {
    if (const auto program = experiment::from_json_text(run.spec_json))
      limits.emplace("", program->timeout);
    return limits;
  }
  const auto program = flow_program(run.spec_json);
  const auto flow = program ? read_flow(*program) : std::unexpected(program.error());
  if (flow)
    for (const auto& step : flow->steps) limits.emplace(step.name, step.timeout);
  return limits;
}

std::string_view series_name(std::string_view run_name) {
  return run_name.substr(0, run_name.rfind('-'));
}

}  // namespace

std::string_view step_of(bool is_flow, std::string_view label) {
  return is_flow ? label.substr(0, label.find('/')) : std::string_view();
}

TaskTimes TaskTimes::read(Context& context, const store::RunRecord& run,
                          std::span<const store::TaskRecord> tasks,
                          std::span<const store::RunRecord> runs) {
  TaskTimes known;
  known.name_ = run.name;
  known.has_steps_ = run.kind == "flow";
  for (const auto& [step, limit] : limits_of(run)) known.steps_[step].times.limit = limit;
  for (auto& [step, times] : ended_of(known.has_steps_, tasks))
    known.steps_[step] = {{std::move(times), known.steps_[step].times.limit}, run.name};
  const bool lacks_some = std::ranges::any_of(tasks, [&](const auto& task) {
    return !store::final(task.state) &&
           known.steps_[std::string(step_of(known.has_steps_, task.label))].times.ended.empty();
  });
  const auto before = std::find_if(runs.rbegin(), runs.rend(), [&](const auto& other) {
    return other.id < run.id && other.kind == run.kind && other.counts.done > 0 &&
           series_name(other.name) == series_name(run.name);
  });
  if (!lacks_some || before == runs.rend()) return known;
  const auto earlier = context.store->tasks(before->id);
  if (!earlier) return known;
  for (auto& [step, times] : ended_of(known.has_steps_, *earlier))
    if (Step& own = known.steps_[step]; own.times.ended.empty())
      own = {{std::move(times), own.times.limit}, before->name};
  return known;
}

std::optional<TaskTimes::Expected> TaskTimes::left(std::string_view label, Duration elapsed) const {
  const auto step = steps_.find(step_of(has_steps_, label));
  if (step == steps_.end()) return std::nullopt;
  const auto& [times, of] = step->second;
  const auto expected = schedule::expected_time(times, elapsed);
  if (!expected) return std::nullopt;
  const std::string named = step->first.empty() ? "" : fmt::format(" of step {}", step->first);
  if (expected->by == 0)
    return Expected{
        expected->left, true,
        fmt::format("the time limit{} of {}, {}", named, name_, format_duration(times.limit))};
  const std::size_t count = times.ended.size();
  return Expected{expected->left, false,
                  fmt::format("{} ended task{}{} of {}", count, count == 1 ? "" : "s", named, of)};
}

}  // namespace berth::run
