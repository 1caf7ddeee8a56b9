// These functions work on a run that nobody drives.
#include <algorithm>

#include "berth/fileset/fileset.h"
#include "berth/run/runner.h"
#include "berth/run/skips.h"
#include "berth/store/database.h"

namespace berth::run {
namespace {

/// As long as both are held no runner takes the run over, here or elsewhere.
struct KeptOut {
  os::Fd lock;
  std::unique_ptr<store::Claim> claim;
};

Result<KeptOut> keep_runners_out(Context& context, const store::RunRecord& run) {
  const std::string& run_name = run.name;
  const std::string directory = run_directory(context, run_name);
  BERTH_TRY(context.env->make_directory(directory, 0700));
  auto lock = context.env->lock(lock_file(directory), false);
  if (!lock && lock.error().kind == ErrorKind::busy)
    return fail(ErrorKind::busy, "{} is running; stop it first: berth stop {}", run_name, run_name);
  if (!lock) return std::unexpected(lock.error());
  auto claim = store::claim(*context.store, run.id);
  if (!claim && claim.error().kind == ErrorKind::busy)
    return fail(ErrorKind::busy, "{} is running on another machine; stop it there first", run_name);
  if (!claim) return std::unexpected(claim.error());
  return KeptOut{*std::move(lock), *std::move(claim)};
}

}  // namespace

Result<std::vector<TaskNumber>> reopen(Context& context, const std::string& run_name, bool all,
                                       const std::string& spec_json) {
  BERTH_ASSIGN(const auto record, context.store->find_run(run_name));
  BERTH_ASSIGN(const KeptOut kept_out, keep_runners_out(context, record));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  std::vector<TaskNumber> reopened;
  std::vector<store::Change> changes;
  if (!spec_json.empty()) changes.emplace_back(store::RunSpecified{spec_json});
  for (const auto& task : tasks) {
    if (!spec_json.empty() && task.state == store::TaskState::running)
      return fail(ErrorKind::busy,
                  "{}/{} may still run as the file was before; end that first: berth stop {}",
                  run_name, task.label, run_name);
    const bool failed = task.state == store::TaskState::failed || was_skipped_after_failure(task);
    if (!failed && !(all && store::final(task.state))) continue;
    reopened.push_back(task.number);
    changes.emplace_back(store::TaskReopened{task.number});
  }
  if (!changes.empty()) BERTH_TRY(context.store->apply(record.id, changes));
  return reopened;
}

Status end_what_was_left(Context& context, const std::string& run_name) {
  BERTH_ASSIGN(const auto record, context.store->find_run(run_name));
  BERTH_ASSIGN(const KeptOut kept_out, keep_runners_out(context, record));
  BERTH_TRY(end_agents(context, record));
  BERTH_TRY(end_orphans(*context.env, run_directory(context, run_name), [](auto) { return true; }));
  return {};
}

Status remove(Context& context, const std::string& run_name) {
  BERTH_ASSIGN(const auto record, context.store->find_run(run_name));
  BERTH_ASSIGN(const KeptOut kept_out, keep_runners_out(context, record));
  const std::string directory = run_directory(context, run_name);
  BERTH_TRY(end_agents(context, record));
  BERTH_ASSIGN(const auto may_run, may_run_remotely(context, record));
  if (!may_run.empty())
    return fail(ErrorKind::busy, "{} is not removed: {}", run_name,
                to_text(may_run.front(), run_name));
  BERTH_TRY(end_orphans(*context.env, directory, [](auto) { return true; }));
  // The record first: files without a record are found by remove_strays(), a record without its
  // files would show a run that has lost its output.
  BERTH_TRY(context.store->remove(record.id));
  return fileset::remove_all(*context.env, directory);
}

Result<int> remove_strays(Context& context) {
  const std::string all = runs_directory(context.state_directory);
  const auto names = context.env->list(all);
  if (!names) return 0;
  BERTH_ASSIGN(const auto records, context.store->runs());
  int removed = 0;
  for (const auto& name : *names) {
    if (std::ranges::find(records, name, &store::RunRecord::name) != records.end()) continue;
    BERTH_TRY(fileset::remove_all(*context.env, all + "/" + name));
    ++removed;
  }
  return removed;
}

}  // namespace berth::run
