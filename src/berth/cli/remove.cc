// berth rm, berth prune: runs that nobody needs any more.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/commands.h"
#include "berth/cli/json_output.h"
#include "berth/cli/table.h"
#include "berth/run/runner.h"

namespace berth::cli {
namespace {

Status remove_all(run::Site& site, const std::vector<std::string>& names) {
  for (const auto& name : names) BERTH_TRY(run::remove(site, name));
  return {};
}

/// Those that ended, or whose runner died, longer ago than `age`; the youngest `keep` stay.
std::vector<std::string> outdated(os::Env& env, const std::vector<store::RunRecord>& records,
                                  Duration age, std::size_t keep) {
  std::vector<std::string> names;  // oldest first, as the records stand
  for (const auto& record : records) {
    const std::string state = state_now(env, record);
    if (state == "running" || state == "waiting") continue;
    if (env.wall() - record.ended.value_or(record.created) >= age) names.push_back(record.name);
  }
  names.resize(names.size() - std::min(names.size(), keep));
  return names;
}

}  // namespace

Result<int> rm_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  // All of them are known and none runs, or nothing is removed.
  for (const auto& name : arguments.targets) {
    BERTH_ASSIGN(const auto record, site.store->find_run(name));
    if (state_now(env, record) == "running")
      return fail(ErrorKind::busy, "{} is running; stop it first: berth stop {}", name, name);
  }
  BERTH_TRY(remove_all(site, arguments.targets));
  print(arguments.json ? names_json("removed", arguments.targets)
                       : fmt::format("removed {}\n", join(arguments.targets, ", ")));
  return 0;
}

Result<int> prune_command(os::Env& env, const Arguments& arguments) {
  const auto age = parse_age(arguments.older_than.empty() ? "30d" : arguments.older_than);
  if (!age) return std::unexpected(within("--older-than", age.error()));
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  BERTH_ASSIGN(const auto records, site.store->runs());
  const auto names = outdated(env, records, *age, static_cast<std::size_t>(arguments.keep));
  if (!arguments.dry_run) {
    BERTH_TRY(remove_all(site, names));
    BERTH_TRY(run::remove_strays(site));
  }
  const std::string_view did = arguments.dry_run ? "would_remove" : "removed";
  if (arguments.json)
    print(names_json(did, names));
  else if (names.empty())
    print(fmt::format("no run ended longer ago than {}\n", format_duration(*age)));
  else
    print(fmt::format("{} {}: {}\n", arguments.dry_run ? "would remove" : "removed", names.size(),
                      join(names, ", ")));
  return 0;
}

}  // namespace berth::cli
