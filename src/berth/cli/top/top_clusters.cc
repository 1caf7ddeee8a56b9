#include "berth/cli/top/top_clusters.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/engine/context.h"
#include "berth/remote/ec2/ec2_commands.h"
#include "berth/remote/slurm/slurm_commands.h"
#include "berth/remote/slurm/slurm_entry.h"
#include "berth/render/table.h"

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

constexpr Duration kAskAgain = std::chrono::seconds(5);

using Rows = Result<std::vector<TopRow>>;

TopRow row_of(remote::Host& host) {
  const auto offer = host.look();
  if (offer)
    return {.host = host.name(),
            .free = offer->free.resources,
            .total = offer->total.resources,
            .holders = holders_of(*offer)};
  return {.host = host.name(),
          .error = host.failure() ? host.failure()->message : "waiting for its answer"};
}

/// Whose jobs the partition has, each once, such as "digits-3, digits-4 (waits), alice".
std::string holders_of(const std::vector<remote::SlurmHolder>& jobs, const std::string& partition) {
  std::vector<std::string> holders;
  for (const auto& job : jobs) {
    const auto partitions = split(job.partition, ',');  // of one that waits
    if (std::ranges::find(partitions, partition) == partitions.end()) continue;
    const std::string who = (job.run.empty() ? job.user : job.run) + (job.waits ? " (waits)" : "");
    if (std::ranges::find(holders, who) == holders.end()) holders.push_back(who);
  }
  return join(holders, ", ");
}

Rows ask_slurm(os::Env& env, const remote::SlurmOptions& options) {
  BERTH_ASSIGN(const auto answer, remote::slurm_partitions(env, options));
  BERTH_ASSIGN(const auto jobs, remote::slurm_holders(env));
  std::vector<TopRow> rows;
  if (!answer.problem.empty()) rows.push_back({.host = "", .error = answer.problem});
  for (const auto& each : answer.used)
    rows.push_back({.host = each.name,
                    .free = each.free,
                    .total = each.total,
                    .holders = holders_of(jobs, each.name),
                    .state = each.open ? "" : "closed"});
  return rows;
}

/// The instances, each of which its run holds as a whole.
Rows ask_ec2(os::Env& env, const remote::Ec2Settings& settings, const std::string& home) {
  BERTH_ASSIGN(const auto instances, remote::ec2_instances(env, settings, home));
  std::vector<TopRow> rows;
  for (const auto& each : instances) {
    TopRow& row = rows.emplace_back();
    row.host = each.id;
    row.holders = each.run;
    row.state = each.type + " " + each.state;
    for (const auto types :
         {std::span<const remote::Ec2Type>(settings.types), remote::known_ec2_types()})
      if (const auto type = std::ranges::find(types, each.type, &remote::Ec2Type::name);
          row.total == Resources{} && type != types.end())
        row.total = remote::block_of(*type).resources;
  }
  return rows;
}

void write(JsonWriter& json, const TopRow& row) {
  json.object().add("host", row.host);
  if (row.error.empty()) {
    json.key("free").raw(to_json(row.free)).key("total").raw(to_json(row.total));
    json.add("holders", row.holders).add("state", row.state);
  } else {
    json.add("error", row.error);
  }
  json.end();
}

}  // namespace

Result<TopClusters> TopClusters::open(os::Env& env) {
  TopClusters top;
  top.env_ = &env;
  BERTH_ASSIGN(const auto entries, remote::read_clusters(env));
  if (entries.empty()) return top;
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto state, engine::state_directory(env));
  top.background_ = env.background_threads();
  top.answers_ = std::make_unique<os::Poll>(env.loop(), [] {});  // for settled() to take
  for (const auto& entry : entries) {
    auto& cluster = *top.clusters_.emplace_back(std::make_unique<Cluster>());
    cluster.name = entry.name;
    cluster.kind = entry.kind;
    cluster.opened = remote::open_cluster(env, entry, agent);
    if (!cluster.opened) continue;
    if (entry.kind == "slurm") {
      BERTH_ASSIGN(auto options, remote::read_slurm(env, entry, agent));
      cluster.ask = [options = std::move(options)](os::Env& there) {
        return ask_slurm(there, options);
      };
    } else if (entry.kind == "ec2") {
      BERTH_ASSIGN(auto settings, remote::read_ec2_settings(env, entry.name, entry.body));
      cluster.ask = [settings = std::move(settings), home = remote::ec2_home(env, state)](
                        os::Env& there) { return ask_ec2(there, settings, home); };
    }
  }
  return top;
}

bool TopClusters::settled() {
  if (background_) background_->turn();
  bool all = true;
  for (auto& cluster : clusters_) all = has_settled(*cluster) && all;
  if (background_) answers_->watch(background_->busy() ? background_->ready() : -1);
  return all;
}

bool TopClusters::has_settled(Cluster& cluster) {
  if (!cluster.opened) return true;
  bool all = true;
  for (auto* host : cluster.opened->hosts) all = (host->look() || host->failure()) && all;
  if (!cluster.ask) return all;
  if (cluster.ask_at && env_->now() >= *cluster.ask_at) {
    cluster.ask_at.reset();
    auto begun =
        background_->start([&cluster, here = env_](os::Env& there) -> os::BackgroundThreads::Then {
          return [&cluster, here, rows = cluster.ask(there)]() mutable {
            cluster.rows = std::move(rows);
            cluster.ask_at = here->now() + kAskAgain;
          };
        });
    if (!begun) cluster.rows = std::unexpected(begun.error());
  }
  return cluster.rows.has_value();
}

TopClusters::Rows TopClusters::rows_of(Cluster& cluster) {
  if (!cluster.opened) return std::unexpected(cluster.opened.error());
  if (cluster.ask) return cluster.rows.value_or(fail(ErrorKind::busy, "waiting for its answer"));
  std::vector<TopRow> rows;
  for (auto* host : cluster.opened->hosts) rows.push_back(row_of(*host));
  return rows;
}

std::string TopClusters::text() {
  (void)settled();
  render::Table table({"cluster", "host", "used", "by"});
  for (auto& cluster : clusters_) {
    const auto rows = rows_of(*cluster);
    if (!rows) table.add({cluster->name, "", rows.error().message, ""});
    if (rows && rows->empty()) table.add({cluster->name, "", "nothing runs", ""});
    for (const auto& row : rows.value_or(std::vector<TopRow>{})) {
      std::vector<std::string> held;
      for (const auto& part : {row.error, held_of(row.free, row.total), row.state})
        if (!part.empty()) held.push_back(part);
      table.add({cluster->name, row.host, join(held, ", "), row.holders});
    }
  }
  return table.empty() ? "" : "\n" + render::to_text(table);
}

std::string TopClusters::json() {
  (void)settled();
  if (clusters_.empty()) return "";
  JsonWriter json;
  json.array();
  for (auto& cluster : clusters_) {
    const auto rows = rows_of(*cluster);
    json.object().add("name", cluster->name).add("kind", cluster->kind).key("hosts").array();
    for (const auto& row : rows.value_or(std::vector<TopRow>{})) write(json, row);
    json.end();
    if (!rows) json.add("error", rows.error().message);
    json.end();
  }
  return json.end().take();
}

}  // namespace berth::cli
