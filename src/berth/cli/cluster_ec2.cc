#include "berth/cli/cluster_ec2.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/engine/run_state.h"
#include "berth/render/table.h"
#include "berth/run/runner.h"

namespace berth::cli {

Result<Ec2Probed> probe_ec2(os::Env& env, const remote::ClusterEntry& entry) {
  Ec2Probed probed{.cluster = entry.name};
  BERTH_ASSIGN(const auto settings, remote::read_ec2_settings(env, entry.name, entry.body));
  BERTH_ASSIGN(const std::string state, run::state_directory(env));
  BERTH_ASSIGN(probed.permissions, remote::ec2_permissions(env, settings));
  if (probed.permissions.front().allowed) {
    BERTH_ASSIGN(probed.instances,
                 remote::ec2_instances(env, settings, remote::ec2_home(env, state)));
  }
  return probed;
}

Result<std::vector<remote::Ec2Found>> clean_ec2(os::Env& env, const remote::ClusterEntry& entry) {
  BERTH_ASSIGN(const auto settings, remote::read_ec2_settings(env, entry.name, entry.body));
  BERTH_ASSIGN(const run::Context context, run::open_context(env));
  const std::string home = remote::ec2_home(env, context.state_directory);
  BERTH_ASSIGN(auto found, remote::ec2_instances(env, settings, home));
  std::erase_if(found, [&](const remote::Ec2Found& instance) {
    const auto run = context.store->find_run(instance.run);
    return run && engine::is_under_way(engine::state_now(env, *run));
  });
  BERTH_TRY(remote::end_ec2_instances(env, settings, found));
  return found;
}

bool Ec2Probed::good() const {
  return std::ranges::all_of(permissions, [](const auto& one) { return one.allowed.has_value(); });
}

std::string to_text(const Ec2Probed& probed) {
  render::Table may({"cluster", "EC2 action", "allowed"});
  for (const auto& one : probed.permissions)
    may.add({probed.cluster, one.action, one.allowed ? "yes" : one.allowed.error().message});
  render::Table runs({"instance", "run", "type", "state", "address"});
  for (const auto& one : probed.instances)
    runs.add({one.id, one.run, one.type, one.state, one.address});
  return render::to_text(may) + (runs.empty() ? "" : render::to_text(runs));
}

std::string to_json(const remote::Ec2Found& one) {
  return JsonWriter()
      .object()
      .add("id", one.id)
      .add("run", one.run)
      .add("type", one.type)
      .add("state", one.state)
      .add("address", one.address)
      .end()
      .take();
}

std::string to_json(const Ec2Probed& probed) {
  JsonWriter json;
  json.object().add("cluster", probed.cluster).key("permissions").array();
  for (const auto& one : probed.permissions)
    json.object()
        .add("action", one.action)
        .add("allowed", one.allowed.has_value())
        .add("why", one.allowed ? "" : one.allowed.error().message)
        .end();
  json.end().key("instances").array();
  for (const auto& one : probed.instances) json.raw(to_json(one));
  return json.end().end().take();
}

}  // namespace berth::cli
