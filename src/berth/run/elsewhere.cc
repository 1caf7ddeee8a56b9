#include "berth/run/elsewhere.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/fileset.h"
#include "berth/remote/clusters.h"
#include "berth/remote/outpost_record.h"

namespace berth::run {
namespace {

constexpr std::size_t kSmallFile = 64 << 10;
/// One whose time is over is called all the same: it may have ended what an end is due for.
constexpr Duration kCalledFor = std::chrono::seconds(10);
constexpr std::size_t kLabelsMost = 5;  // of tasks, that are told

Result<remote::ClusterEntry> find_cluster(os::Env& env, const std::string& own,
                                          const std::string& name) {
  BERTH_ASSIGN(auto entries, remote::parse_clusters(own, "the run's own clusters"));
  const auto found = std::ranges::find(entries, name, &remote::ClusterEntry::name);
  if (found != entries.end()) return std::move(*found);
  return remote::find_cluster(env, name);
}

std::string own_clusters(Site& site, const store::RunRecord& record) {
  return site.env->read_file(own_clusters_file(run_directory(site, record.name)), kSmallFile)
      .value_or("");
}

remote::OutpostOptions options_of(Site& site, const store::RunRecord& record,
                                  const remote::ClusterEntry& entry, remote::AgentFile agent,
                                  remote::Place place, std::string directory) {
  if (!site.holders) site.holders = std::make_shared<remote::Holders>();
  return {
      .place = std::move(place),
      .agent = std::move(agent),
      .directory = std::move(directory),
      .root = run_directory(site, record.name),
      .store = cache_directory(site.state_directory),
      .lease = entry.lease,
      .patience = std::max(entry.patience, entry.lease),
      .epoch = record.epoch + 1,  // of the runner that is about to take over
      .shares = entry.shares,
      .confirmed = site.env->status(confirmed_file(run_directory(site, record.name))).has_value(),
      .surroundings = entry.surroundings,
      .holders = site.holders};
}

Result<Source> open_source(Site& site, const store::RunRecord& record, const std::string& name) {
  os::Env& env = *site.env;
  BERTH_ASSIGN(const auto entry, find_cluster(env, own_clusters(site, record), name));
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(auto opened,
               remote::open_cluster(env, entry, agent,
                                    remote::ForRun{record.name, run_directory(site, record.name),
                                                   site.state_directory}));
  remote::FarCluster* cluster = opened.cluster.get();
  Source source{.name = name, .cluster = std::move(opened.cluster)};
  source.tend = [cluster] { return cluster->tend(); };
  source.staff = [&site, &env, record, entry, agent, cluster](const cluster::Alloc& alloc) {
    const std::string directory =
        fmt::format("{}/{}-{:x}", remote_workers_directory(run_directory(site, record.name)),
                    record.epoch + 1, alloc.id.value);
    auto place = cluster->place(alloc.id);
    if (place && env.make_directory(directory, 0700))
      (void)env.replace_file(directory + "/cluster", entry.name, 0600);
    return remote::Outpost::open(
        env, options_of(site, record, entry, agent, place ? *place : remote::Place{}, directory));
  };
  return source;
}

struct RecordedOutpost {
  std::string directory;
  remote::ClusterEntry entry;
  remote::Place place;
  Duration time_left;
  std::optional<std::vector<Token>> attempts;
};

std::vector<RecordedOutpost> recorded_outposts(Site& site, const store::RunRecord& record) {
  os::Env& env = *site.env;
  std::vector<RecordedOutpost> recorded;
  const std::string all = remote_workers_directory(run_directory(site, record.name));
  const auto own = own_clusters(site, record);
  for (const auto& name : env.list(all).value_or(std::vector<std::string>{})) {
    const std::string directory = all + "/" + name;
    const auto cluster = env.read_file(directory + "/cluster", kSmallFile);
    const auto text = env.read_file(directory + "/place.json", kSmallFile);
    auto place =
        text ? remote::parse_place(*text) : Result<remote::Place>(std::unexpected(text.error()));
    if (!place) continue;
    // An entry that a person has taken out, or broken, does not make us forget what runs there.
    auto entry = find_cluster(env, own, cluster.value_or(""));
    if (!entry) entry = find_cluster(env, "gone: {kind: ssh}", "gone");
    if (!entry) continue;
    const Duration patience = std::max(entry->patience, entry->lease);
    const auto time_left = remote::recorded_time_left(env, directory, patience);
    RecordedOutpost& found = recorded.emplace_back(directory, *std::move(entry), *std::move(place),
                                                   time_left.value_or(patience), std::nullopt);
    if (!time_left) continue;
    found.attempts.emplace();
    for (const auto& attempt : remote::recorded_attempts(env, directory))
      found.attempts->push_back(attempt.token);
  }
  return recorded;
}

}  // namespace

Status check_clusters(os::Env& env, const Whereabouts& where) {
  for (const auto& name : where.names) {
    BERTH_ASSIGN(const auto entry, find_cluster(env, where.own, name));
    BERTH_TRY(remote::check_cluster(env, entry));
  }
  return {};
}

Status keep_clusters(Site& site, const store::RunRecord& record, const Whereabouts& where) {
  if (where.names.empty()) return {};
  if (where.confirmed) BERTH_TRY(confirm_sending(site, record));
  const std::string directory = run_directory(site, record.name);
  BERTH_TRY(site.env->make_directory(directory, 0700));
  if (!where.own.empty())
    BERTH_TRY(site.env->replace_file(own_clusters_file(directory), where.own, 0600));
  return site.env->replace_file(cluster_names_file(directory), join(where.names, "\n"), 0600);
}

Status confirm_sending(Site& site, const store::RunRecord& record) {
  const std::string directory = run_directory(site, record.name);
  BERTH_TRY(site.env->make_directory(directory, 0700));
  return site.env->replace_file(confirmed_file(directory), "", 0600);
}

Result<Sources> sources_of(Site& site, const store::RunRecord& record) {
  Sources sources;
  const auto text =
      site.env->read_file(cluster_names_file(run_directory(site, record.name)), kSmallFile);
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
  std::vector<LeftElsewhere> left;
  for (auto& [directory, entry, place, time_left, attempts] : recorded_outposts(site, record)) {
    const auto agent = remote::agent_file(*site.env);
    if (!agent) continue;
    auto options = options_of(site, record, entry, *agent, place, directory);
    options.patience = std::max(time_left, kCalledFor);
    left.push_back({.directory = directory,
                    .machine = place.door.name,
                    .time_left = time_left,
                    .attempts = std::move(attempts),
                    .worker = remote::Outpost::open(*site.env, std::move(options))});
  }
  return left;
}

std::string list_of(std::vector<std::string> labels) {
  const std::size_t more = labels.size() - std::min(labels.size(), kLabelsMost);
  labels.resize(labels.size() - more);
  return join(labels, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

Result<std::vector<MayRun>> may_run_elsewhere(Site& site, const store::RunRecord& record) {
  std::vector<MayRun> all;
  for (const auto& outpost : recorded_outposts(site, record)) {
    if (outpost.time_left == Duration(0) || (outpost.attempts && outpost.attempts->empty()))
      continue;
    BERTH_ASSIGN(const auto tasks, site.store->tasks(record.id));
    std::vector<std::string> labels;
    for (const auto& task : tasks)
      if (outpost.attempts &&
          std::ranges::find(*outpost.attempts, task.token) != outpost.attempts->end())
        labels.push_back(task.label);
    all.push_back({outpost.place.door.name, std::move(labels), outpost.time_left});
  }
  return all;
}

std::string to_text(const MayRun& one, const std::string& run) {
  return fmt::format(
      "{} was not reached: {} may still run there, until the lease ends in {} at most. To end it "
      "sooner: berth stop {}, once the machine answers",
      one.machine, one.tasks.empty() ? "something" : "task " + list_of(one.tasks),
      format_duration(one.time_left), run);
}

}  // namespace berth::run
