#include "berth/engine/fleets/fleet_plan.h"

#include <algorithm>
#include <set>

#include "berth/base/text.h"
#include "berth/run/state/context.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostManifestBytes = 16U << 20;
constexpr std::string_view kManifestSuffix = ".yaml";

/// Whether berth plan wrote the file.
Result<bool> is_from_plan(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const auto status, env.status(path));
  if (status.kind != os::FileStatus::Kind::file) return false;
  BERTH_ASSIGN(const auto text, env.read_file(path, kMostManifestBytes));
  return text.starts_with(fleet::kManifestMark);
}

/// Notes on files in the directory that an earlier plan has left, and this one does not replace.
Result<std::vector<std::string>> notes_on_left(os::Env& env, const std::string& directory,
                                               const std::vector<fleet::Manifest>& now) {
  std::set<std::string> written;
  for (const auto& manifest : now) written.insert(manifest.name + std::string(kManifestSuffix));
  std::vector<std::string> notes;
  BERTH_ASSIGN(const auto names, env.list(directory));
  for (const auto& name : names) {
    if (!name.ends_with(kManifestSuffix) || written.contains(name)) continue;
    const auto path = path_in(directory, name);
    if (is_from_plan(env, path).value_or(false))
      notes.push_back(fmt::format("{}: from an earlier plan; this plan has no such server", path));
  }
  return notes;
}

std::vector<std::string> notes_on_servers(const fleet::Plan& plan) {
  std::vector<std::string> notes;
  for (const auto& [name, assignment] : plan.servers)
    if (assignment.allocation.replicas == 0)
      notes.push_back(fmt::format("server '{}' has no replicas, so no manifest: {}", clip(name),
                                  assignment.reason));
  return notes;
}

}  // namespace

Result<std::vector<fleet::Manifest>> write_manifests(os::Env& env, const fleet::System& system,
                                                     const fleet::Plan& plan,
                                                     const ManifestRequest& request,
                                                     const FleetNotes& notes) {
  BERTH_ASSIGN(auto manifests, fleet::manifests(system, plan, request.options));
  BERTH_TRY(env.make_user_directory(request.directory, 0777));
  for (auto& manifest : manifests) {
    manifest.file = path_in(request.directory, manifest.name + std::string(kManifestSuffix));
    if (!env.status(manifest.file)) continue;
    BERTH_ASSIGN(const bool is_replaced, is_from_plan(env, manifest.file));
    if (!is_replaced)
      return fail(ErrorKind::invalid,
                  "{}: exists and was not written by berth plan (its first line would say so); "
                  "nothing was written",
                  manifest.file);
  }
  for (const auto& manifest : manifests)
    BERTH_TRY(env.replace_user_file(manifest.file, manifest.text));
  notes(notes_on_servers(plan));
  BERTH_ASSIGN(const auto left, notes_on_left(env, request.directory, manifests));
  notes(left);
  return manifests;
}

Result<FleetPlan> plan_fleet(os::Env& env, fleet::System system, FleetPlanRequest request,
                             const fleet::Execution& execution, const FleetNotes& notes) {
  FleetPlan made{.system = std::move(system), .request = std::move(request)};
  const auto& [lists_candidates, is_solved, manifests, start_on, context] = made.request;
  made.candidates = fleet::candidates(made.system, made.system.options.model, execution);
  if (!is_solved) return made;
  made.plan = fleet::solve(made.system, made.candidates, made.system.options, execution);
  if (manifests) {
    BERTH_ASSIGN(made.manifests, write_manifests(env, made.system, made.plan, *manifests, notes));
  }
  if (!start_on) return made;
  Context own;
  if (context == nullptr) {
    BERTH_ASSIGN(own, open_context(env));
  }
  std::vector<std::string> of_start;
  auto started = start_plan(context == nullptr ? own : *context, made.system, made.plan, *start_on,
                            [&](const std::string& note) { of_start.push_back(note); });
  notes(of_start);
  BERTH_ASSIGN(made.started, std::move(started));
  return made;
}

std::vector<std::string> notes_on_pairs(const fleet::System& system) {
  const fleet::Options& options = system.options;
  const bool is_greedy = options.solver == fleet::Solver::greedy;
  std::vector<std::string> notes;
  if (is_greedy && options.heterogeneous)
    notes.emplace_back("the greedy solver gives each server one accelerator");
  if (is_greedy && options.disaggregated)
    notes.emplace_back("the greedy solver keeps prefill and decode together");
  const auto can_send = [](const auto& performance) {
    return performance.second.transfer.has_value();
  };
  if (options.disaggregated && std::ranges::none_of(system.models, [&](const auto& model) {
        return std::ranges::any_of(model.second.accelerators, can_send);
      }))
    notes.emplace_back(
        "prefill and decode stay together: no perfParms say what the transfer of a prompt's cache "
        "takes, such as \"transfer\": {\"fixed\": 3, \"perToken\": 0.01} in ms");
  return notes;
}

}  // namespace berth::engine
