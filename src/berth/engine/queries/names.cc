#include "berth/engine/queries/names.h"

#include "berth/engine/context.h"
#include "berth/engine/queries/run_record.h"
#include "berth/remote/clusters.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostNames = 1000;

/// The existing state directory. Errors: not_found.
Result<Context> open_existing(os::Env& env) {
  BERTH_ASSIGN(const std::string state, run::state_directory(env));
  BERTH_TRY(env.status(state));
  return open_context(env);
}

}  // namespace

Result<std::vector<NameFound>> runs_named(os::Env& env, std::string_view begin) {
  BERTH_ASSIGN(const Context context, open_existing(env));
  BERTH_ASSIGN(const auto records, context.store->runs());
  std::vector<NameFound> found;
  for (auto record = records.rbegin(); record != records.rend(); ++record)
    if (found.size() < kMostNames && record->name.starts_with(begin))
      found.push_back({record->name, counts_text(record->counts)});
  return found;
}

Result<std::vector<NameFound>> tasks_named(os::Env& env, std::string_view begin) {
  BERTH_ASSIGN(const Context context, open_existing(env));
  const std::string run = parse_task_path(begin).run;
  BERTH_ASSIGN(const auto record, context.store->find_run(run));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  std::vector<NameFound> found;
  for (const auto& task : tasks)
    if (found.size() < kMostNames && (run + "/" + task.label).starts_with(begin))
      found.push_back({run + "/" + task.label, std::string(store::name(task.state))});
  return found;
}

Result<std::vector<NameFound>> cluster_names(os::Env& env) {
  BERTH_ASSIGN(const auto entries, remote::read_clusters(env));
  std::vector<NameFound> found;
  for (const auto& entry : entries) found.push_back({entry.name, entry.kind});
  return found;
}

}  // namespace berth::engine
