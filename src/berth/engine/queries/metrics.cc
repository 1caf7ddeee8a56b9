#include "berth/engine/queries/metrics.h"

#include <algorithm>
#include <cstring>

#include "berth/engine/queries/run_state.h"

namespace berth::engine {
namespace {

// A run that ended is reported with its tasks for this time, so that a scrape sees its end.
constexpr Duration kReportedFor = std::chrono::hours(1);

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

Result<RunMetrics> timed(Context& context, const store::RunRecord& record) {
  RunMetrics run{record};
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  for (const auto& task : tasks) {
    if (task.state == store::TaskState::failed && task.cause)
      ++run.failures[exec::kCauseNames.name(*task.cause)];
    if (!task.started) continue;
    run.waited_s.push_back(std::max(0.0, seconds(*task.started - record.created)));
    if (task.ended) run.ran_s.push_back(std::max(0.0, seconds(*task.ended - *task.started)));
  }
  return run;
}

Status add_runs(Context& context, Metrics& metrics) {
  os::Env& env = *context.env;
  BERTH_ASSIGN(const auto records, context.store->runs());
  for (const auto& record : records) {
    ++metrics.runs[state_now(env, record)];
    for (const auto of : {&store::Counts::waiting, &store::Counts::running, &store::Counts::done,
                          &store::Counts::cached, &store::Counts::skipped, &store::Counts::failed,
                          &store::Counts::stopped})
      metrics.tasks.*of += record.counts.*of;
    if (record.started && record.ended)
      metrics.run_seconds.push_back(seconds(*record.ended - *record.started));
    if (record.ended && env.wall() - *record.ended > kReportedFor) continue;
    BERTH_ASSIGN(auto run, timed(context, record));
    metrics.recent.push_back(std::move(run));
  }
  return {};
}

/// The number of commits is in the index of SQLite's write-ahead log: its third word grows by one
/// with each (https://www.sqlite.org/walformat.html, "WAL-Index Header"). It restarts when the last
/// process that has the store open leaves it, as a counter may.
void add_store(const Context& context, Metrics& metrics) {
  constexpr std::int64_t kPlace = 8;  // bytes
  std::uint32_t commits = 0;
  const std::string database = database_file(context.state_directory);
  const auto index = context.env->open_read(database + "-shm");
  const auto bytes = index ? context.env->read_at(*index, kPlace, sizeof commits)
                           : Result<std::string>(std::unexpected(index.error()));
  if (!bytes || bytes->size() != sizeof commits) return;
  std::memcpy(&commits, bytes->data(), sizeof commits);
  metrics.commits = commits;
  if (const auto status = context.env->status(database)) metrics.store_bytes = status->size;
}

}  // namespace

Result<Metrics> metrics_of(Context& context) {
  Metrics metrics;
  BERTH_ASSIGN(metrics.machine, machine_report(*context.env));
  BERTH_TRY(add_runs(context, metrics));
  add_store(context, metrics);
  return metrics;
}

}  // namespace berth::engine
