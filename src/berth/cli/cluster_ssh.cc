#include "berth/cli/cluster_ssh.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/loop.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

constexpr Duration kProbesWithin = std::chrono::seconds(60);

std::string amounts_text(const Resources& free, const Resources& total) {
  std::vector<std::string> parts;
  total.each([&](std::string_view name, std::int64_t amount) {
    if (name == "disk") return;
    parts.push_back(fmt::format("{} {} of {}", name, format_amount(name, free.get(name)),
                                format_amount(name, amount)));
  });
  return join(parts, ", ");
}

/// The GPUs of a host, of which `models` has one entry each: "2 NVIDIA H100, 1 GPU".
std::string gpus_text(const std::vector<std::string>& models) {
  std::vector<std::string> parts, counted;
  for (const auto& model : models) {
    if (std::ranges::find(counted, model) != counted.end()) continue;
    counted.push_back(model);
    parts.push_back(cli::gpus_text(std::ranges::count(models, model), model));
  }
  return join(parts, ", ");
}

}  // namespace

std::string gpus_text(std::int64_t count, std::string_view model) {
  if (model.empty()) return fmt::format("{} {}", count, count == 1 ? "GPU" : "GPUs");
  return fmt::format("{} {}", count, clip(model));
}

Result<std::vector<HostProbed>> probe_hosts(os::Env& env, const remote::ClusterEntry& entry) {
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto opened, remote::open_cluster(env, entry, agent));
  std::vector<HostProbed> probed;
  std::vector<remote::Host*> open = opened.hosts;
  const Mono until = env.now() + kProbesWithin;
  while (!open.empty() && env.stop_signals() == 0) {
    std::erase_if(open, [&](remote::Host* host) {
      auto offer = host->look();
      if (!offer && !host->failure() && env.now() < until) return false;
      if (!offer && host->failure()) offer = std::unexpected(*host->failure());
      probed.push_back({entry.name, host->name(), std::move(offer)});
      return true;
    });
    if (!open.empty()) BERTH_TRY(env.loop().turn(until));
  }
  std::ranges::sort(probed, {}, &HostProbed::host);
  return probed;
}

std::string to_text(const std::vector<HostProbed>& probed) {
  render::Table table({"cluster", "host", "free", "GPUs", "system", "used by"});
  std::string errors;  // not in the table: a long one would move all other columns
  for (const auto& [cluster, host, offer] : probed) {
    if (!offer) {
      errors += fmt::format("{}/{}: {}\n", cluster, host, offer.error().message);
      continue;
    }
    std::vector<std::string> holders;
    for (const auto& holder : offer->holders)
      if (!holder.waiting) holders.push_back(holder.label);
    table.add({cluster, host, amounts_text(offer->free.resources, offer->total.resources),
               gpus_text(offer->devices), offer->system, join(holders, ", ")});
  }
  return (table.empty() ? "" : render::to_text(table)) + errors;
}

std::string to_json(const HostProbed& probed) {
  const auto& offer = probed.offer;
  JsonWriter json;
  json.object().add("cluster", probed.cluster).add("host", probed.host);
  if (!offer) return json.add("error", offer.error().message).end().take();
  json.add("name", offer->host).add("system", offer->system);
  json.key("free").raw(to_json(offer->free.resources));
  json.key("total").raw(to_json(offer->total.resources));
  json.key("devices").list(offer->devices).key("holders").array();
  for (const auto& holder : offer->holders)
    json.object()
        .add("what", holder.label)
        .key("resources")
        .raw(to_json(holder.resources))
        .add("waits", holder.waiting)
        .end();
  return json.end().end().take();
}

Result<std::vector<remote::HostCleaned>> clean_hosts(os::Env& env,
                                                     const remote::ClusterEntry& entry,
                                                     const agent::CleanOptions& options) {
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto opened, remote::open_cluster(env, entry, agent));
  std::vector<remote::Transport> transports;
  for (const auto* host : opened.hosts) transports.push_back(host->transport());
  return remote::clean_hosts(env, transports, agent, options);
}

std::string to_json(const remote::HostCleaned& of) {
  JsonWriter json;
  json.object().add("host", of.host);
  if (!of.cleaned) return json.add("error", of.cleaned.error().message).end().take();
  return json.add("leases", of.cleaned->leases)
      .add("objects", of.cleaned->objects)
      .add("bytes", of.cleaned->lease_bytes + of.cleaned->object_bytes)
      .end()
      .take();
}

}  // namespace berth::cli
