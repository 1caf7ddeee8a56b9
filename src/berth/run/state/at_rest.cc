// These functions work on a run that nobody drives.
#include <algorithm>

#include "berth/agent/layout.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/fileset.h"
#include "berth/run/drive/runner.h"
#include "berth/run/state/clusters.h"
#include "berth/run/state/exclusive.h"
#include "berth/run/state/layout.h"
#include "berth/run/state/living.h"
#include "berth/run/state/skips.h"
#include "berth/run/studies/lease_watch.h"
#include "berth/run/studies/study.h"

namespace berth::run {
namespace {

constexpr Duration kAgentExitsWithin = std::chrono::seconds(3);
constexpr Duration kExitPause = std::chrono::milliseconds(20);

Result<std::size_t> count_living_agents(os::Env& env, const std::string& run_directory) {
  BERTH_ASSIGN(const auto names, list_there(env, agents_directory(run_directory)));
  std::size_t living = 0;
  for (const auto& name : names) {
    const std::string directory = agents_directory(run_directory) + "/" + name;
    const auto lock = env.lock_existing(agent::lock_file(directory));
    if (!lock && lock.error().kind == ErrorKind::busy) ++living;
  }
  return living;
}

/// Counts the trials of a study whose claims have not expired. A claim that is seen for the first
/// time counts, since its lease may yet be renewed.
Result<std::int64_t> count_claims(Context& context, const store::RunRecord& run) {
  if (run.kind != kStudy || run.counts.running == 0) return 0;
  BERTH_ASSIGN(const auto whole, context.store->find_run(run.name));
  BERTH_ASSIGN(const auto program, experiment::from_json_text(whole.spec_json));
  BERTH_ASSIGN(const auto trials, context.store->tasks(run.id));
  LeaseWatch watch(*context.env, leases_file(run_directory(context, run.name)));
  for (const auto& trial : trials)
    if (trial.state == store::TaskState::running) watch.see(trial);
  watch.exchange();
  return std::ranges::count_if(trials, [&](const store::TaskRecord& trial) {
    return trial.state == store::TaskState::running && trial.lease &&
           watch.unchanged(trial.number) < program.lease;
  });
}

void add_time(const std::optional<Wall>& at, Wall& last) {
  if (at) last = std::max(last, *at);
}

void add_times_of_files(os::Env& env, const std::string& directory, Wall& last) {
  for (const auto& name : env.list(directory).value_or(std::vector<std::string>{}))
    if (const auto status = env.status(directory + "/" + name)) add_time(status->modified, last);
}

}  // namespace

Result<std::vector<std::string>> find_living(Context& context, const store::RunRecord& run) {
  os::Env& env = *context.env;
  const std::string directory = run_directory(context, run.name);
  BERTH_ASSIGN(std::size_t agents, count_living_agents(env, directory));
  for (const Mono until = env.now() + kAgentExitsWithin;
       agents > 0 && run.ended && run.alloc.empty() && env.now() < until;) {
    BERTH_TRY(env.wait({}, env.now() + kExitPause));
    BERTH_ASSIGN(agents, count_living_agents(env, directory));
  }
  std::vector<std::string> living;
  if (agents > 0)
    living.push_back(fmt::format("{} worker{} of the run on this machine {} alive", agents,
                                 agents == 1 ? "" : "s", agents == 1 ? "is" : "are"));
  BERTH_ASSIGN(const auto remote, may_run_remotely(context, run));
  for (const auto& one : remote)
    living.push_back(fmt::format("its tasks may still run on {} (for at most {})", one.machine,
                                 format_duration(one.time_left)));
  BERTH_ASSIGN(const auto claims, count_claims(context, run));
  if (claims > 0)
    living.push_back(fmt::format("{} of its trials {} claimed by a process", claims,
                                 claims == 1 ? "is" : "are"));
  return living;
}

Result<Wall> last_activity(Context& context, const store::RunRecord& run) {
  if (run.ended) return *run.ended;
  Wall last = run.created;
  add_time(run.started, last);
  add_time(run.last_try, last);
  const std::string directory = run_directory(context, run.name);
  add_times_of_files(*context.env, directory, last);
  const std::string agents = agents_directory(directory);
  for (const auto& name : context.env->list(agents).value_or(std::vector<std::string>{}))
    add_times_of_files(*context.env, agents + "/" + name, last);
  BERTH_ASSIGN(const auto tasks, context.store->tasks(run.id));
  for (const auto& task : tasks) {
    add_time(task.started, last);
    add_time(task.ended, last);
  }
  return last;
}

Result<std::vector<TaskNumber>> reopen(Context& context, const std::string& run_name, bool all,
                                       const std::string& spec_json) {
  BERTH_ASSIGN(const Exclusive run, take_run(context, run_name));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(run.record.id));
  std::vector<TaskNumber> reopened;
  std::vector<store::Change> changes;
  if (!spec_json.empty()) changes.emplace_back(store::RunSpecified{spec_json});
  for (const auto& task : tasks) {
    if (!spec_json.empty() && task.state == store::TaskState::running)
      return fail(
          ErrorKind::busy,
          "{}/{} may still run with the earlier version of the file; stop it first: berth stop {}",
          run_name, task.label, run_name);
    const bool failed = task.state == store::TaskState::failed || was_skipped_after_failure(task);
    if (!failed && !(all && store::final(task.state))) continue;
    reopened.push_back(task.number);
    changes.emplace_back(store::TaskReopened{task.number});
  }
  // Tasks that are repeated although they were done may not replace what they protected.
  if (all || !spec_json.empty())
    BERTH_TRY(fileset::remove_all(*context.env, protected_file(run_directory(context, run_name))));
  if (!changes.empty()) BERTH_TRY(context.store->apply(run.record.id, changes));
  return reopened;
}

Status end_what_was_left(Context& context, const std::string& run_name) {
  BERTH_ASSIGN(const Exclusive run, take_run(context, run_name));
  BERTH_TRY(end_agents(context, run.record));
  BERTH_TRY(end_orphans(*context.env, run_directory(context, run_name), [](auto) { return true; }));
  return {};
}

Status remove(Context& context, const std::string& run_name, IfLiving if_living) {
  BERTH_ASSIGN(const Exclusive run, take_run(context, run_name));
  if (if_living == IfLiving::refuse) {
    BERTH_ASSIGN(const auto living, find_living(context, run.record));
    if (!living.empty())
      return fail(ErrorKind::busy, "{} is not removed: {}", run_name, join(living, "; "));
  }
  const std::string directory = run_directory(context, run_name);
  BERTH_TRY(end_agents(context, run.record));
  BERTH_ASSIGN(const auto may_run, may_run_remotely(context, run.record));
  if (!may_run.empty())
    return fail(ErrorKind::busy, "{} is not removed: {}", run_name,
                to_text(may_run.front(), run_name));
  BERTH_TRY(end_orphans(*context.env, directory, [](auto) { return true; }));
  // The record first: files without a record are found by remove_strays(), a record without its
  // files would show a run that has lost its output.
  BERTH_TRY(context.store->remove(run.record.id));
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
