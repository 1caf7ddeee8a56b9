// berth rm and berth prune remove runs that are no longer needed.
#include <algorithm>
#include <utility>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/follow.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/control.h"
#include "berth/engine/run_state.h"
#include "berth/run/find_run.h"
#include "berth/run/living.h"
#include "berth/run/runner.h"

namespace berth::cli {
namespace {

/// The runs that prune removes, and one line for each run that it leaves because something of it
/// is alive.
struct Outdated {
  std::vector<std::string> names;  // oldest first, as the records are sorted
  std::vector<std::string> notes;
};

std::string left_note(const std::string& run, const std::vector<std::string>& living) {
  return fmt::format("{} is left: {}; to end that: berth stop {}", run, join(living, "; "), run);
}

/// Chooses the runs whose last activity is longer ago than `age`, without the youngest `keep`.
Result<Outdated> find_outdated(run::Context& context, Duration age, std::size_t keep) {
  os::Env& env = *context.env;
  BERTH_ASSIGN(const auto records, context.store->runs());
  Outdated outdated;
  for (const auto& record : records) {
    if (engine::is_under_way(engine::state_now(env, record))) continue;
    if (env.wall() - record.ended.value_or(record.created) < age) continue;  // the cheap part first
    BERTH_ASSIGN(const Wall last, run::last_activity(context, record));
    if (env.wall() - last < age) continue;
    BERTH_ASSIGN(const auto living, run::find_living(context, record));
    if (living.empty())
      outdated.names.push_back(record.name);
    else
      outdated.notes.push_back(left_note(record.name, living));
  }
  outdated.names.resize(outdated.names.size() - std::min(outdated.names.size(), keep));
  return outdated;
}

struct RmOptions {
  bool json = false;
  bool force = false;
  std::vector<std::string> runs;

  void add_to(Options& options) {
    options.json(json);
    add_runs(options, runs, "Runs, such as digits-3 digits-4");
    options.flag("--force", force, "Also end processes left by a runner that died");
    options.example("berth rm digits-3 digits-4");
  }
};

/// Asks where something of the run is alive, and refuses where no one can be asked.
Status confirm_removal(run::Context& context, const store::RunRecord& record) {
  BERTH_ASSIGN(const auto living, run::find_living(context, record));
  if (living.empty()) return {};
  const std::string text = fmt::format("{}: {}", record.name, join(living, "; "));
  if (is_confirmed(*context.env, text + ". End that and remove the run?")) return {};
  return fail(ErrorKind::busy,
              "{}; end it first: berth stop {}, or end and remove: berth rm --force {}", text,
              record.name, record.name);
}

Result<int> rm(os::Env& env, const RmOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  // All of them are known and none is in use, or nothing is removed.
  for (const auto& name : options.runs) {
    BERTH_ASSIGN(const auto record, run::find_run(context, name));
    BERTH_TRY(engine::check_unused(context, record));
    if (!options.force) BERTH_TRY(confirm_removal(context, record));
  }
  for (const auto& name : options.runs) BERTH_TRY(run::remove(context, name, run::IfLiving::end));
  print(options.json ? names_json("removed", options.runs)
                     : fmt::format("removed {}\n", join(options.runs, ", ")));
  return 0;
}

struct PruneOptions {
  bool json = false;
  std::string older_than;
  int keep = 0;
  bool dry_run = false;

  void add_to(Options& options) {
    options.json(json);
    options.value("--older-than", older_than, "Delete runs that ended this long ago (default: 30d)")
        .named("DURATION");
    options.value("--keep", keep, "Keep the N youngest of them").between(0, 1'000'000);
    options.flag("--dry-run", dry_run, "List the runs without deleting them");
    options.example("berth prune --older-than 7d --keep 10 --dry-run");
  }
};

Result<int> prune(os::Env& env, const PruneOptions& options) {
  BERTH_ASSIGN(const Duration age, age_of("--older-than", options.older_than));
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(auto outdated, find_outdated(context, age, static_cast<std::size_t>(options.keep)));
  auto& [names, notes] = outdated;
  if (!options.dry_run) {
    for (const auto& name : std::exchange(names, {})) {
      const auto removed = run::remove(context, name, run::IfLiving::refuse);
      if (!removed && removed.error().kind != ErrorKind::busy)
        return std::unexpected(removed.error());
      removed ? names.push_back(name) : notes.push_back(removed.error().message);
    }
    BERTH_TRY(run::remove_strays(context));
  }
  for (const auto& note : notes) print_error("note: " + note + "\n");
  const std::string_view did = options.dry_run ? "would_remove" : "removed";
  if (options.json)
    print(names_json(did, names));
  else if (names.empty())
    print(fmt::format("no run ended longer ago than {}\n", format_duration(age)));
  else
    print(fmt::format("{} {}: {}\n", options.dry_run ? "would remove" : "removed", names.size(),
                      join(names, ", ")));
  return 0;
}

}  // namespace

Command rm_command() {
  return command("rm", "Delete runs and their output", rm);
}

Command prune_command() {
  return command("prune", "Delete runs that ended long ago", prune);
}

}  // namespace berth::cli
