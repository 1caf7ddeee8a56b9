#include "berth/store/check.h"

namespace berth::store {
namespace {

constexpr const char* kSave =
    "restore the store from a copy, or save what can be read: sqlite3 berth.db .recover | sqlite3 "
    "new.db, and put new.db in its place while no run is driven";

std::string advice_for_run(const std::string& name) {
  return "the other runs are not affected; restore the store from a copy, or remove this run: "
         "berth rm " +
         name;
}

/// Returns false where `status` is damage, which is added to `checked`.
template <class Value>
Result<bool> is_sound(const Result<Value>& read, const std::string& of, const std::string& advice,
                      Checked& checked) {
  if (read) return true;
  if (read.error().kind != ErrorKind::corrupt) return std::unexpected(read.error());
  checked.damages.push_back({of + read.error().message, advice});
  return false;
}

/// Stops at the first damage of each kind: one damaged page would fill the screen.
Status check_run(Store& store, const RunRecord& run, Checked& checked) {
  const std::string of = run.name + ": ", advice = advice_for_run(run.name);
  BERTH_ASSIGN(const bool has_spec, is_sound(store.find_run(run.name), of, advice, checked));
  const auto tasks = store.tasks(run.id);
  BERTH_ASSIGN(bool is_whole, is_sound(tasks, of, advice, checked));
  if (!is_whole) return {};
  for (const auto& task : *tasks) {
    const std::string of_task = run.name + "/" + task.label + ": ";
    BERTH_ASSIGN(const bool has_attempts,
                 is_sound(store.attempts(run.id, task.number), of_task, advice, checked));
    BERTH_ASSIGN(const bool has_metrics,
                 is_sound(store.metrics(run.id, task.number), of_task, advice, checked));
    const auto found = store.find_task(run.id, task.label);
    if (!found && found.error().kind == ErrorKind::not_found)
      checked.damages.push_back({of_task + "the index of labels lacks it", kSave});
    is_whole = has_attempts && has_metrics && found.has_value();
    if (!is_whole) return {};
    ++checked.tasks;
  }
  if (has_spec) ++checked.runs;
  return {};
}

}  // namespace

Result<Checked> check(Store& store) {
  Checked checked;
  BERTH_ASSIGN(const auto lines, find_structural_damage(store));
  for (const auto& line : lines) checked.damages.push_back({"its file: " + line, kSave});
  const auto runs = store.runs();
  BERTH_ASSIGN(const bool is_listed, is_sound(runs, "the list of runs: ", kSave, checked));
  if (is_listed)
    for (const auto& run : *runs) BERTH_TRY(check_run(store, run, checked));
  BERTH_ASSIGN(
      const bool has_results,
      is_sound(store.results(0), "the cache of results: ",
               "the task that made it runs again when it is needed, and replaces it", checked));
  (void)has_results;
  return checked;
}

}  // namespace berth::store
