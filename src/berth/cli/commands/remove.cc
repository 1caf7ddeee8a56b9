// berth rm and berth prune remove runs that are no longer needed.
#include "berth/base/text.h"
#include "berth/cli/commands/follow.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/render/runs/removal.h"

namespace berth::cli {
namespace {

struct RmOptions {
  Output output;
  bool force = false;
  std::vector<std::string> runs;

  void add_to(Options& options) {
    output.add_to(options);
    add_runs(options, runs, "Runs, such as digits-3 digits-4");
    options.flag("--force", force, "Also end processes left by a runner that died");
    options.example("berth rm digits-3 digits-4");
  }
};

/// Asks whether to end what is alive of the run. Errors: busy, if no one can be asked.
Status confirm_removal(os::Env& env, const std::string& run,
                       const std::vector<std::string>& living) {
  if (living.empty()) return {};
  const std::string text = fmt::format("{}: {}", run, join(living, "; "));
  if (is_confirmed(env, text + ". End that and remove the run?")) return {};
  return fail(ErrorKind::busy,
              "{}; end it first: berth stop {}, or end and remove: berth rm --force {}", text, run,
              run);
}

Result<int> rm(os::Env& env, const RmOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  for (const auto& run : options.runs) {
    BERTH_ASSIGN(const auto living, engine::check_removable(context, run));
    if (!options.force) BERTH_TRY(confirm_removal(env, run, living));
  }
  BERTH_TRY(engine::remove_runs(context, options.runs));
  options.output.print(render::Removed{options.runs});
  return 0;
}

struct PruneOptions {
  Output output;
  std::string older_than;
  int keep = 0;
  bool dry_run = false;

  void add_to(Options& options) {
    output.add_to(options);
    options.value("--older-than", older_than, "Delete runs that ended this long ago (default: 30d)")
        .named("DURATION");
    options.value("--keep", keep, "Keep the N youngest of them").between(0, 1'000'000);
    options.flag("--dry-run", dry_run, "List the runs without deleting them");
    options.example("berth prune --older-than 7d --keep 10 --dry-run");
  }
};

Result<int> prune(os::Env& env, const PruneOptions& options) {
  BERTH_ASSIGN(const Duration age, age_of("--older-than", options.older_than));
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto pruned,
               engine::prune_runs(context, {.age = age,
                                            .keep = static_cast<std::size_t>(options.keep),
                                            .dry_run = options.dry_run}));
  for (const auto& note : pruned.notes) print_error("note: " + note + "\n");
  options.output.print(pruned);
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
