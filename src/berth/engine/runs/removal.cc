#include "berth/engine/runs/removal.h"

#include <algorithm>
#include <utility>

#include "berth/base/text.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/runs/control.h"
#include "berth/run/drive/runner.h"
#include "berth/run/state/living.h"

namespace berth::engine {
namespace {

std::string left_note(const std::string& run, const std::vector<std::string>& living) {
  return fmt::format("{} is left: {}; to end that: berth stop {}", run, join(living, "; "), run);
}

/// Chooses the runs to prune, and describes those that are left because they are alive.
Result<Pruned> choose_runs(Context& context, const PruneRequest& request) {
  os::Env& env = *context.env;
  BERTH_ASSIGN(const auto records, context.store->runs());
  Pruned chosen{.is_dry_run = request.dry_run, .age = request.age, .removed = {}, .notes = {}};
  for (const auto& record : records) {
    if (is_under_way(state_now(env, record))) continue;
    if (env.wall() - record.ended.value_or(record.created) < request.age) continue;
    BERTH_ASSIGN(const Wall last, run::last_activity(context, record));
    if (env.wall() - last < request.age) continue;
    BERTH_ASSIGN(const auto living, run::find_living(context, record));
    if (living.empty())
      chosen.removed.push_back(record.name);
    else
      chosen.notes.push_back(left_note(record.name, living));
  }
  chosen.removed.resize(chosen.removed.size() - std::min(chosen.removed.size(), request.keep));
  return chosen;
}

}  // namespace

Result<std::vector<std::string>> check_removable(Context& context, const std::string& run) {
  BERTH_ASSIGN(const auto record, find_run(context, run));
  BERTH_TRY(check_unused(context, record));
  return run::find_living(context, record);
}

Status remove_runs(Context& context, const std::vector<std::string>& runs) {
  for (const auto& run : runs) BERTH_TRY(check_removable(context, run));
  for (const auto& run : runs) BERTH_TRY(run::remove(context, run, run::IfLiving::end));
  return {};
}

Result<Pruned> prune_runs(Context& context, const PruneRequest& request) {
  BERTH_ASSIGN(auto pruned, choose_runs(context, request));
  if (request.dry_run) return pruned;
  for (const auto& name : std::exchange(pruned.removed, {})) {
    const auto removed = run::remove(context, name, run::IfLiving::refuse);
    if (!removed && removed.error().kind != ErrorKind::busy)
      return std::unexpected(removed.error());
    removed ? pruned.removed.push_back(name) : pruned.notes.push_back(removed.error().message);
  }
  BERTH_TRY(run::remove_strays(context));
  return pruned;
}

}  // namespace berth::engine
