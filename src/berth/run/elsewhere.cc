#include "berth/run/elsewhere.h"

#include "berth/base/text.h"
#include "berth/fileset/fileset.h"
#include "berth/remote/clusters.h"

namespace berth::run {
namespace {

constexpr std::size_t kSmallFile = 64 << 10;

std::string outposts_directory(const Site& site, const store::RunRecord& record) {
  return run_directory(site, record.name) + "/outposts";
}

remote::OutpostOptions options_of(Site& site, const store::RunRecord& record,
                                  const remote::ClusterEntry& entry, remote::AgentFile agent,
                                  remote::Place place, std::string directory) {
  return {.place = std::move(place),
          .agent = std::move(agent),
          .directory = std::move(directory),
          .root = run_directory(site, record.name),
          .store = site.state_directory + "/cache",
          .patience = entry.lease,
          .epoch = record.epoch + 1,  // of the runner that is about to take over
          .shares = entry.shares,
          .surroundings = entry.surroundings};
}

Result<Source> open_source(Site& site, const store::RunRecord& record, const std::string& name) {
  os::Env& env = *site.env;
  BERTH_ASSIGN(const auto entry, remote::find_cluster(env, name));
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(auto opened, remote::open_cluster(env, entry, agent));
  remote::FarCluster* cluster = opened.cluster.get();
  Source source{.name = name, .cluster = std::move(opened.cluster)};
  source.staff = [&site, &env, record, entry, agent, cluster](const cluster::Alloc& alloc) {
    const std::string directory = fmt::format("{}/{}-{:x}", outposts_directory(site, record),
                                              record.epoch + 1, alloc.id.value);
    auto place = cluster->place(alloc.id);
    if (place && env.make_directory(directory, 0700))
      (void)env.replace_file(directory + "/cluster", entry.name, 0600);
    return remote::Outpost::open(
        env, options_of(site, record, entry, agent, place ? *place : remote::Place{}, directory));
  };
  return source;
}

}  // namespace

Status keep_clusters(Site& site, const store::RunRecord& record,
                     std::span<const std::string> names) {
  const std::string directory = run_directory(site, record.name);
  BERTH_TRY(site.env->make_directory(directory, 0700));
  return site.env->replace_file(directory + "/clusters", join(names, "\n"), 0600);
}

Result<Sources> sources_of(Site& site, const store::RunRecord& record) {
  Sources sources;
  const auto text = site.env->read_file(run_directory(site, record.name) + "/clusters", kSmallFile);
  if (!text) return sources;
  for (const auto name : split(*text, '\n')) {
    if (name.empty()) continue;
    BERTH_ASSIGN(auto source, open_source(site, record, std::string(name)));
    if (!sources.main)
      sources.main = std::move(source);
    else
      sources.auxiliary.push_back(std::move(source));
  }
  return sources;
}

std::vector<LeftElsewhere> find_outposts(Site& site, const store::RunRecord& record) {
  os::Env& env = *site.env;
  std::vector<LeftElsewhere> left;
  const std::string all = outposts_directory(site, record);
  const auto names = env.list(all);
  for (const auto& name : names.value_or(std::vector<std::string>{})) {
    const std::string directory = all + "/" + name;
    const auto cluster = env.read_file(directory + "/cluster", kSmallFile);
    const auto text = env.read_file(directory + "/place.json", kSmallFile);
    const auto place =
        text ? remote::parse_place(*text) : Result<remote::Place>(std::unexpected(text.error()));
    const auto agent = remote::agent_file(env);
    const auto entry = remote::find_cluster(env, cluster.value_or(""));
    if (!place || !agent || !entry) {
      (void)fileset::remove_all(env, directory);
      continue;
    }
    left.push_back(
        {directory, place->door.name,
         remote::Outpost::open(env, options_of(site, record, *entry, *agent, *place, directory))});
  }
  return left;
}

}  // namespace berth::run
