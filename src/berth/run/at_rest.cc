// What is done to a run that does not run.
#include <algorithm>

#include "berth/fileset/fileset.h"
#include "berth/run/runner.h"
#include "berth/store/database.h"

namespace berth::run {
namespace {

/// As long as both are held no runner takes the run over, here or elsewhere.
struct KeptOut {
  os::Fd lock;
  std::unique_ptr<store::Claim> claim;
};

Result<KeptOut> keep_runners_out(Site& site, const store::RunRecord& run) {
  const std::string& run_name = run.name;
  const std::string directory = run_directory(site, run_name);
  BERTH_TRY(site.env->make_directory(directory, 0700));
  auto lock = site.env->lock(lock_file(directory), false);
  if (!lock && lock.error().kind == ErrorKind::busy)
    return fail(ErrorKind::busy, "{} is running; stop it first: berth stop {}", run_name, run_name);
  if (!lock) return std::unexpected(lock.error());
  auto claim = store::claim(*site.store, run.id);
  if (!claim && claim.error().kind == ErrorKind::busy)
    return fail(ErrorKind::busy, "{} is running on another machine; stop it there first", run_name);
  if (!claim) return std::unexpected(claim.error());
  return KeptOut{*std::move(lock), *std::move(claim)};
}

}  // namespace

Result<std::vector<TaskNumber>> reopen(Site& site, const std::string& run_name, bool all,
                                       const std::string& spec_json) {
  BERTH_ASSIGN(const auto record, site.store->find_run(run_name));
  BERTH_ASSIGN(const KeptOut kept_out, keep_runners_out(site, record));
  BERTH_ASSIGN(const auto tasks, site.store->tasks(record.id));
  std::vector<TaskNumber> reopened;
  std::vector<store::Change> changes;
  if (!spec_json.empty()) changes.emplace_back(store::RunSpecified{spec_json});
  for (const auto& task : tasks) {
    if (!spec_json.empty() && task.state == store::TaskState::running)
      return fail(ErrorKind::busy,
                  "{}/{} may still run as the file was before; end that first: berth stop {}",
                  run_name, task.label, run_name);
    if (task.state != store::TaskState::failed && !(all && store::final(task.state))) continue;
    reopened.push_back(task.number);
    changes.emplace_back(store::TaskReopened{task.number});
  }
  if (!changes.empty()) BERTH_TRY(site.store->apply(record.id, changes));
  return reopened;
}

Status end_what_was_left(Site& site, const std::string& run_name) {
  BERTH_ASSIGN(const auto record, site.store->find_run(run_name));
  BERTH_ASSIGN(const KeptOut kept_out, keep_runners_out(site, record));
  return end_agents(site, record);
}

Status remove(Site& site, const std::string& run_name) {
  BERTH_ASSIGN(const auto record, site.store->find_run(run_name));
  BERTH_ASSIGN(const KeptOut kept_out, keep_runners_out(site, record));
  const std::string directory = run_directory(site, run_name);
  BERTH_TRY(end_agents(site, record));
  BERTH_ASSIGN(const auto may_run, may_run_elsewhere(site, record));
  if (!may_run.empty())
    return fail(ErrorKind::busy, "{} is not removed: {}", run_name,
                to_text(may_run.front(), run_name));
  BERTH_TRY(end_orphans(*site.env, directory, [](auto) { return true; }));
  // The record first: files without a record are found by remove_strays(), a record without its
  // files would show a run that has lost its output.
  BERTH_TRY(site.store->remove(record.id));
  return fileset::remove_all(*site.env, directory);
}

Result<int> remove_strays(Site& site) {
  const std::string all = runs_directory(site.state_directory);
  const auto names = site.env->list(all);
  if (!names) return 0;
  BERTH_ASSIGN(const auto records, site.store->runs());
  int removed = 0;
  for (const auto& name : *names) {
    if (std::ranges::find(records, name, &store::RunRecord::name) != records.end()) continue;
    BERTH_TRY(fileset::remove_all(*site.env, all + "/" + name));
    ++removed;
  }
  return removed;
}

}  // namespace berth::run
