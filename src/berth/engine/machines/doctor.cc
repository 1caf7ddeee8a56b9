// Examines everything that berth doctor reports.
#include <gnu/libc-version.h>

#include <iterator>

#include "berth/agent/client/agent_client.h"
#include "berth/engine/machines/clusters.h"
#include "berth/engine/machines/examination.h"
#include "berth/remote/command.h"
#include "berth/store/check.h"

namespace berth::engine {
namespace {

Result<std::string> version_of_agent(os::Env& env) {
  BERTH_ASSIGN(const auto program, agent::agent_program(env));
  constexpr Duration kMost = std::chrono::seconds(10);
  remote::Command command(env, {program, "--version"}, env.environment(), kMost, [] {});
  while (true) {
    if (const auto end = command.take()) {
      if (end->error) return std::unexpected(*end->error);
      if (!end->good())
        return fail(ErrorKind::io, "{} --version: exit {}: {}", program, end->exit_code, end->err);
      return end->out;
    }
    BERTH_TRY(env.loop().turn(env.now() + kMost));
  }
}

Result<std::size_t> runs_in_store(os::Env& env) {
  BERTH_ASSIGN(const Context context, open_context(env));
  BERTH_ASSIGN(const auto runs, context.store->runs());
  return runs.size();
}

/// Reads the whole store. A store that does not open is examine_state()'s.
std::vector<Finding> examine_store(os::Env& env) {
  const auto context = open_context(env);
  if (!context) return {};
  const auto checked = store::check(*context->store);
  if (!checked)
    return {{"state", Finding::State::faulty, checked.error().message, "try again later"}};
  std::vector<Finding> findings;
  for (const auto& damage : checked->damages)
    findings.push_back({"state", Finding::State::faulty, damage.what, damage.advice});
  if (findings.empty())
    findings.push_back(
        {"state", Finding::State::good,
         fmt::format("no damage in {} runs with {} tasks", checked->runs, checked->tasks), ""});
  return findings;
}

Status status_of(const auto& result) {
  return result ? Status() : Status(std::unexpected(result.error()));
}

/// Whether each machine of the cluster answers.
Result<std::vector<Reached>> reach(os::Env& env, const remote::ClusterEntry& entry) {
  std::vector<Reached> reached;
  if (entry.kind == "slurm") {
    BERTH_ASSIGN(const auto probed, probe_slurm(env, entry));
    reached.push_back({entry.name, "", probed.status()});
  } else if (entry.kind == "ec2") {
    BERTH_ASSIGN(const auto probed, probe_ec2(env, entry));
    for (const auto& permission : probed.permissions)
      reached.push_back({entry.name, permission.action, permission.allowed});
  } else {
    BERTH_ASSIGN(const auto probed, probe_hosts(env, entry));
    for (const auto& host : probed)
      reached.push_back({entry.name, host.host, status_of(host.offer)});
  }
  return reached;
}

Result<std::vector<Reached>> reach_all(os::Env& env, bool offline) {
  BERTH_ASSIGN(const auto entries, remote::read_clusters(env));
  std::vector<Reached> all;
  for (const auto& entry : entries) {
    if (const auto checked = remote::check_cluster(env, entry); !checked || offline) {
      if (!checked) all.push_back({entry.name, "", checked});
      continue;
    }
    auto reached = reach(env, entry);
    if (reached)
      std::ranges::move(*reached, std::back_inserter(all));
    else
      all.push_back({entry.name, "", std::unexpected(reached.error())});
  }
  return all;
}

}  // namespace

Examination examine(os::Env& env, bool offline) {
  Examination all;
  const auto add = [&](std::vector<Finding> more) {
    std::ranges::move(more, std::back_inserter(all.findings));
  };
  const auto limits = probe_limits(env);
  add({examine_versions(env, version_of_agent(env), ::gnu_get_libc_version())});
  add({examine_limits(env, limits ? *limits : expect_limits(env))});
  add(examine_devices(env,
                      machine::read_devices(env, {}, machine::Ledger::default_directory(env))));
  add(examine_state(env, runs_in_store(env)));
  add(examine_store(env));
  add({examine_ledger(env)});
  add(examine_clusters(reach_all(env, offline)));
  add(examine_tools(env));
  return all;
}

}  // namespace berth::engine
