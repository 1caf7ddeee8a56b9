// berth rm, berth prune: runs that nobody needs any more.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/shared_options.h"
#include "berth/run/runner.h"
#include "berth/run/study.h"

namespace berth::cli {
namespace {

Status remove_all(run::Context& context, const std::vector<std::string>& names) {
  for (const auto& name : names) BERTH_TRY(run::remove(context, name));
  return {};
}

/// The runs that ended, or whose runner died, longer ago than `age`, without the youngest `keep`.
std::vector<std::string> outdated(os::Env& env, const std::vector<store::RunRecord>& records,
                                  Duration age, std::size_t keep) {
  std::vector<std::string> names;  // oldest first, as the records stand
  for (const auto& record : records) {
    if (is_under_way(state_now(env, record))) continue;
    if (env.wall() - record.ended.value_or(record.created) >= age) names.push_back(record.name);
  }
  names.resize(names.size() - std::min(names.size(), keep));
  return names;
}

struct RmOptions {
  bool json = false;
  std::vector<std::string> runs;

  void add_to(Options& options) {
    options.json(json);
    options.list("RUN", runs, "such as digits-3").required();
    options.example("berth rm digits-3 digits-4");
  }
};

Result<int> rm(os::Env& env, const RmOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  // All of them are known and none runs, or nothing is removed.
  for (const auto& name : options.runs) {
    BERTH_ASSIGN(const auto record, context.store->find_run(name));
    // A study has no runner: it is in use while a program evaluates one of its trials.
    const bool in_use = record.kind != run::kStudy || record.counts.running > 0;
    if (in_use && is_under_way(state_now(env, record)))
      return fail(ErrorKind::busy, "{} is running; stop it first: berth stop {}", name, name);
  }
  BERTH_TRY(remove_all(context, options.runs));
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
    options.value("--older-than", older_than, "such as 7d (default 30d)");
    options.value("--keep", keep, "but leave this many of the youngest of them")
        .between(0, 1'000'000);
    options.flag("--dry-run", dry_run, "only say which");
    options.example("berth prune --older-than 7d --keep 10 --dry-run");
  }
};

Result<int> prune(os::Env& env, const PruneOptions& options) {
  BERTH_ASSIGN(const Duration age, age_of("--older-than", options.older_than));
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto records, context.store->runs());
  const auto names = outdated(env, records, age, static_cast<std::size_t>(options.keep));
  if (!options.dry_run) {
    BERTH_TRY(remove_all(context, names));
    BERTH_TRY(run::remove_strays(context));
  }
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
  return command("rm", "forget runs, with their output", rm);
}

Command prune_command() {
  return command("prune", "forget the runs that ended long ago", prune);
}

}  // namespace berth::cli
