#include "berth/run/state/find_run.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::run {
namespace {

constexpr std::size_t kFewestLetters = 3;  // shorter names are near to too many others

/// Returns the latest run of that program, such as "first-3" for "first", or the nearest name; ""
/// if none is near.
std::string meant_run(const Context& context, std::string_view name) {
  const auto runs = context.store->runs();
  if (!runs || name.size() < kFewestLetters) return "";
  std::vector<std::string> names;
  for (const auto& run : *runs) names.push_back(run.name);
  std::ranges::reverse(names);  // of names that are equally near, the latest run comes first
  const auto of_program = std::ranges::find_if(names, [&](const std::string& each) {
    return each.starts_with(name) && each.size() > name.size() + 1 && each[name.size()] == '-' &&
           parse_integer(std::string_view(each).substr(name.size() + 1));
  });
  return of_program != names.end() ? *of_program : std::string(nearest_of(name, names));
}

/// Returns "; its tasks are 1 to 40" or "; did you mean 'train/b'?"; "" if no label is near.
std::string task_hint(const Context& context, const store::RunRecord& run, std::string_view label) {
  const auto tasks = context.store->tasks(run.id);
  if (!tasks || tasks->empty()) return "";
  std::vector<std::string> labels;
  for (const auto& task : *tasks) labels.push_back(task.label);
  if (std::ranges::all_of(labels, [](const auto& each) { return parse_integer(each).has_value(); }))
    return labels.size() == 1
               ? "; its task is " + labels.front()
               : fmt::format("; its tasks are {} to {}", labels.front(), labels.back());
  const auto near = label.size() < kFewestLetters ? "" : nearest_of(label, labels);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

}  // namespace

Result<store::RunRecord> find_run(const Context& context, std::string_view name) {
  auto run = context.store->find_run(name);
  if (run || run.error().kind != ErrorKind::not_found) return run;
  const auto meant = meant_run(context, name);
  if (!meant.empty()) run.error().message += fmt::format("; did you mean '{}'?", meant);
  return run;
}

Result<store::TaskRecord> find_task(const Context& context, const store::RunRecord& run,
                                    std::string_view label) {
  auto task = context.store->find_task(run.id, label);
  if (task || task.error().kind != ErrorKind::not_found) return task;
  auto hint = task_hint(context, run, label);
  if (hint.empty()) hint = "; see berth show " + run.name;
  return fail(ErrorKind::not_found, "{} has no task '{}'{}", run.name, clip(label), hint);
}

Status replace_last_run(const Context& context, std::string& reference) {
  if (reference != kLastRun && !reference.starts_with(std::string(kLastRun) + "/")) return {};
  BERTH_ASSIGN(const auto runs, context.store->runs());
  if (runs.empty())
    return fail(ErrorKind::not_found, "{}: there are no runs yet; start one with berth run FILE",
                kLastRun);
  reference.replace(0, kLastRun.size(), runs.back().name);
  return {};
}

}  // namespace berth::run
