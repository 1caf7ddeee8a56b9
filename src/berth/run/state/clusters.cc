#include "berth/run/state/clusters.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/fileset.h"
#include "berth/remote/clusters.h"
#include "berth/remote/remote_worker_record.h"
#include "berth/run/drive/runner.h"
#include "berth/run/state/run_labels.h"

namespace berth::run {
namespace {

constexpr std::size_t kSmallFile = 64 << 10;
/// So long a remote worker is tried at least, even if its time is over: it may know how attempts
/// ended whose end is not recorded.
constexpr Duration kCalledFor = std::chrono::seconds(10);
constexpr std::size_t kLabelsMost = 5;  // of tasks, that are told

Result<remote::ClusterEntry> find_cluster(os::Env& env, const std::string& own,
                                          const std::string& name) {
  BERTH_ASSIGN(auto entries, remote::parse_clusters(own, "the run's own clusters"));
  const auto found = std::ranges::find(entries, name, &remote::ClusterEntry::name);
  if (found != entries.end()) return std::move(*found);
  return remote::find_cluster(env, name);
}

/// A small file that is empty where it is not there: one that cannot be read now may say anything.
Result<std::string> read_if_there(os::Env& env, const std::string& file) {
  auto text = env.read_file(file, kSmallFile);
  if (!text && text.error().kind == ErrorKind::not_found) return std::string();
  return text;
}

Result<std::string> own_clusters(Context& context, const store::RunRecord& record) {
  return read_if_there(*context.env, own_clusters_file(run_directory(context, record.name)));
}

remote::RemoteWorkerOptions options_of(Context& context, const store::RunRecord& record,
                                       const remote::ClusterEntry& entry, remote::AgentFile agent,
                                       remote::LeaseDirectory lease_directory,
                                       std::string directory) {
  if (!context.holders) context.holders = std::make_shared<remote::Holders>();
  return {.lease_directory = std::move(lease_directory),
          .agent = std::move(agent),
          .directory = std::move(directory),
          .root = run_directory(context, record.name),
          .store = cache_directory(context.state_directory),
          .lease = entry.lease,
          .timeout = std::max(entry.timeout, entry.lease),
          .reconnect = entry.reconnect,
          .epoch = record.epoch + 1,  // of the runner that is about to take over
          .shares = entry.shares,
          .confirmed =
              context.env->status(confirmed_file(run_directory(context, record.name))).has_value(),
          .task_environment = entry.task_environment,
          .holders = context.holders};
}

Result<Source> open_source(Context& context, const store::RunRecord& record,
                           const std::string& name) {
  os::Env& env = *context.env;
  BERTH_ASSIGN(const auto own, own_clusters(context, record));
  BERTH_ASSIGN(const auto entry, find_cluster(env, own, name));
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(auto opened,
               remote::open_cluster(env, entry, agent,
                                    remote::ForRun{record.name, run_directory(context, record.name),
                                                   context.state_directory, labels_of(record)}));
  remote::RemoteCluster* cluster = opened.cluster.get();
  Source source{.name = name, .cluster = std::move(opened.cluster)};
  source.tend = [cluster] { return cluster->tend(); };
  source.start_worker = [&context, &env, record, entry, agent,
                         cluster](const cluster::Alloc& alloc) {
    const std::string directory =
        fmt::format("{}/{}-{:x}", remote_workers_directory(run_directory(context, record.name)),
                    record.epoch + 1, alloc.id.value);
    auto lease_directory = cluster->lease_directory(alloc.id);
    if (lease_directory && env.make_directory(directory, 0700))
      (void)env.replace_file(directory + "/cluster", entry.name, 0600);
    return remote::RemoteWorker::open(
        env, options_of(context, record, entry, agent,
                        lease_directory ? *lease_directory : remote::LeaseDirectory{}, directory));
  };
  return source;
}

struct RecordedRemoteWorker {
  std::string directory;
  remote::ClusterEntry entry;
  remote::LeaseDirectory lease_directory;
  Duration time_left;
  std::optional<std::vector<Token>> attempts;
};

/// What cannot be read is not taken for absent: its tasks would run a second time.
Result<std::vector<RecordedRemoteWorker>> recorded_remote_workers(Context& context,
                                                                  const store::RunRecord& record) {
  os::Env& env = *context.env;
  std::vector<RecordedRemoteWorker> recorded;
  const std::string all = remote_workers_directory(run_directory(context, record.name));
  BERTH_ASSIGN(const auto own, own_clusters(context, record));
  BERTH_ASSIGN(const auto names, list_there(env, all));
  for (const auto& name : names) {
    const std::string directory = all + "/" + name;
    const auto cluster = env.read_file(directory + "/cluster", kSmallFile);
    const auto text = env.read_file(remote::lease_file(directory), kSmallFile);
    if (!text && text.error().kind == ErrorKind::not_found) continue;  // nothing was leased yet
    if (!text) return std::unexpected(text.error());
    auto lease_directory = remote::parse_lease_directory(*text);
    if (!lease_directory) continue;
    // An entry that a person has taken out, or broken, does not make us forget what runs there.
    auto entry = find_cluster(env, own, cluster.value_or(""));
    if (!entry) entry = find_cluster(env, "gone: {kind: ssh}", "gone");
    if (!entry) continue;
    const Duration timeout = std::max(entry->timeout, entry->lease);
    const auto time_left = remote::recorded_time_left(env, directory, timeout);
    RecordedRemoteWorker& found =
        recorded.emplace_back(directory, *std::move(entry), *std::move(lease_directory),
                              time_left.value_or(timeout), std::nullopt);
    if (!time_left) continue;
    BERTH_ASSIGN(const auto attempts, remote::recorded_attempts(env, directory));
    found.attempts.emplace();
    for (const auto& attempt : attempts) found.attempts->push_back(attempt.token);
  }
  return recorded;
}

}  // namespace

Status check_clusters(os::Env& env, const ClusterChoice& where) {
  for (const auto& name : where.names) {
    BERTH_ASSIGN(const auto entry, find_cluster(env, where.own, name));
    BERTH_TRY(remote::check_cluster(env, entry));
  }
  return {};
}

Status keep_clusters(Context& context, const store::RunRecord& record, const ClusterChoice& where) {
  if (where.names.empty()) return {};
  if (where.confirmed) BERTH_TRY(confirm_sending(context, record));
  const std::string directory = run_directory(context, record.name);
  BERTH_TRY(context.env->make_directory(directory, 0700));
  if (!where.own.empty())
    BERTH_TRY(context.env->replace_file(own_clusters_file(directory), where.own, 0600));
  return context.env->replace_file(cluster_names_file(directory), join(where.names, "\n"), 0600);
}

Status confirm_sending(Context& context, const store::RunRecord& record) {
  const std::string directory = run_directory(context, record.name);
  BERTH_TRY(context.env->make_directory(directory, 0700));
  return context.env->replace_file(confirmed_file(directory), "", 0600);
}

Result<Sources> sources_of(Context& context, const store::RunRecord& record) {
  Sources sources;
  BERTH_ASSIGN(
      const auto text,
      read_if_there(*context.env, cluster_names_file(run_directory(context, record.name))));
  for (const auto name : split(text, '\n')) {
    if (name.empty()) continue;
    BERTH_ASSIGN(auto source, open_source(context, record, std::string(name)));
    if (!sources.main)
      sources.main = std::move(source);
    else
      sources.auxiliary.push_back(std::move(source));
  }
  return sources;
}

Result<std::vector<RecoveredRemoteWorker>> find_remote_workers(Context& context,
                                                               const store::RunRecord& record) {
  std::vector<RecoveredRemoteWorker> left;
  BERTH_ASSIGN(auto recorded, recorded_remote_workers(context, record));
  for (auto& [directory, entry, lease_directory, time_left, attempts] : recorded) {
    BERTH_ASSIGN(const auto agent, remote::agent_file(*context.env));
    auto options = options_of(context, record, entry, agent, lease_directory, directory);
    options.timeout = std::max(time_left, kCalledFor);
    auto worker = remote::RemoteWorker::open(*context.env, std::move(options));
    // Nobody was called yet: what cannot go on is this side (a full disk, say).
    if (auto cannot = worker->lost()) return std::unexpected(*std::move(cannot));
    left.push_back({.directory = directory,
                    .machine = lease_directory.transport.name,
                    .time_left = time_left,
                    .attempts = std::move(attempts),
                    .worker = std::move(worker)});
  }
  return left;
}

Result<std::vector<std::string>> list_there(os::Env& env, const std::string& directory) {
  auto names = env.list(directory);
  if (!names && names.error().kind == ErrorKind::not_found) return std::vector<std::string>();
  return names;
}

std::string list_of(std::vector<std::string> labels) {
  const std::size_t more = labels.size() - std::min(labels.size(), kLabelsMost);
  labels.resize(labels.size() - more);
  return join(labels, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

Result<std::vector<MayRun>> may_run_remotely(Context& context, const store::RunRecord& record) {
  std::vector<MayRun> all;
  BERTH_ASSIGN(const auto remote_workers, recorded_remote_workers(context, record));
  for (const auto& remote_worker : remote_workers) {
    if (remote_worker.time_left == Duration(0) ||
        (remote_worker.attempts && remote_worker.attempts->empty()))
      continue;
    BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
    std::vector<std::string> labels;
    for (const auto& task : tasks)
      if (remote_worker.attempts &&
          std::ranges::find(*remote_worker.attempts, task.token) != remote_worker.attempts->end())
        labels.push_back(task.label);
    all.push_back(
        {remote_worker.lease_directory.transport.name, std::move(labels), remote_worker.time_left});
  }
  return all;
}

std::string to_text(const MayRun& one, const std::string& run) {
  return fmt::format(
      "{} was not reached: {} may still run on it until the lease ends, in at most {}. To stop it "
      "sooner: berth stop {}, once the machine answers",
      one.machine, one.tasks.empty() ? "something" : "task " + list_of(one.tasks),
      format_duration(one.time_left), run);
}

}  // namespace berth::run
