#include "berth/cli/top_clusters.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/cli/json_output.h"
#include "berth/cli/table.h"

namespace berth::cli {
namespace {

std::string held_of(const Resources& free, const Resources& total) {
  std::vector<std::string> parts;
  total.each([&](std::string_view name, std::int64_t amount) {
    if (name == "disk") return;
    parts.push_back(fmt::format("{} {} of {}", name, format_amount(name, amount - free.get(name)),
                                format_amount(name, amount)));
  });
  return join(parts, ", ");
}

std::string holders_of(const agent::MachineOffer& offer) {
  std::vector<std::string> holders;
  for (const auto& holder : offer.holders)
    holders.push_back(holder.waiting ? holder.label + " (waits)" : holder.label);
  return join(holders, ", ");
}

}  // namespace

Result<TopClusters> TopClusters::open(os::Env& env) {
  TopClusters top;
  BERTH_ASSIGN(const auto entries, remote::read_clusters(env));
  if (entries.empty()) return top;
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  for (const auto& entry : entries)
    top.clusters_.push_back({entry.name, entry.kind, remote::open_cluster(env, entry, agent)});
  return top;
}

bool TopClusters::settled() {
  bool all = true;
  for (auto& cluster : clusters_)
    if (cluster.opened)
      for (auto* host : cluster.opened->hosts) all = (host->look() || host->failure()) && all;
  return all;
}

std::string TopClusters::text() {
  Table table({"cluster", "host", "held", "by"});
  for (auto& [name, kind, opened] : clusters_) {
    if (!opened) {
      table.add({name, "", opened.error().message, ""});
      continue;
    }
    if (opened->hosts.empty())
      table.add({name, "", fmt::format("{}: see berth cluster probe {}", kind, name), ""});
    for (auto* host : opened->hosts) {
      const auto offer = host->look();
      if (offer)
        table.add({name, host->name(), held_of(offer->free.resources, offer->total.resources),
                   holders_of(*offer)});
      else
        table.add({name, host->name(),
                   host->failure() ? host->failure()->message : "it is being asked", ""});
    }
  }
  return table.empty() ? "" : "\n" + table.text();
}

std::string TopClusters::json() {
  std::string all;
  for (auto& [name, kind, opened] : clusters_) {
    std::string hosts;
    if (opened)
      for (auto* host : opened->hosts) {
        const auto offer = host->look();
        hosts +=
            fmt::format(R"({}{{"host":{})", hosts.empty() ? "" : ",", json_quote(host->name()));
        if (offer)
          hosts +=
              fmt::format(R"(,"free":{},"total":{},"holders":{}}})", to_json(offer->free.resources),
                          to_json(offer->total.resources), json_quote(holders_of(*offer)));
        else
          hosts += fmt::format(R"(,"error":{}}})", json_quote(offer.error().message));
      }
    all += fmt::format(R"({}{{"name":{},"kind":{},"hosts":[{}]{}}})", all.empty() ? "" : ",",
                       json_quote(name), json_quote(kind), hosts,
                       opened ? "" : ",\"error\":" + json_quote(opened.error().message));
  }
  return all.empty() ? "" : ",\"clusters\":[" + all + "]";
}

}  // namespace berth::cli
