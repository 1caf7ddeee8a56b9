// berth metrics: runs, their tasks and this machine as Prometheus scrapes them.
#include <algorithm>
#include <array>
#include <cstring>

#include "berth/api/exposition.h"
#include "berth/base/units.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/run_state.h"
#include "berth/error.h"
#include "berth/render/machines/machine.h"

namespace berth::cli {
namespace {

// Seconds. A run that has ended is told for so long with its tasks, so that a scrape sees its end.
constexpr std::array kBounds{0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14'400.0, 86'400.0};
constexpr Duration kTellsFor = std::chrono::hours(1);

struct MetricsOptions {
  std::string file;

  void add_to(Options& options) {
    options.value("-o,--output", file, "Replace this file atomically (default: standard output)")
        .named("FILE");
    options.footer(
        "Example, every minute by a timer, for node_exporter's textfile collector:\n"
        "  berth metrics -o /var/lib/prometheus/node-exporter/berth.prom");
  }
};

struct CountedState {
  std::string_view name;
  std::int64_t store::Counts::* of;
};
constexpr CountedState kStates[] = {
    {"waiting", &store::Counts::waiting}, {"running", &store::Counts::running},
    {"done", &store::Counts::done},       {"cached", &store::Counts::cached},
    {"skipped", &store::Counts::skipped}, {"failed", &store::Counts::failed},
    {"stopped", &store::Counts::stopped}};

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Of one resource, in its own unit: cores, bytes, a count.
double amount(std::string_view resource, std::int64_t value) {
  return static_cast<double>(value) / (measure(resource) == Measure::milli ? 1000 : 1);
}

struct TimedRun {
  store::RunRecord record;
  std::vector<double> waited_s, ran_s;                // each task's last attempt
  std::map<std::string_view, std::int64_t> failures;  // failed tasks by cause
};

Result<TimedRun> timed(engine::Context& context, const store::RunRecord& record) {
  TimedRun run{record, {}, {}, {}};
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

Status add_runs(os::Env& env, engine::Context& context, api::Exposition& out) {
  BERTH_ASSIGN(const auto records, context.store->runs());
  std::map<std::string, std::int64_t> runs;
  store::Counts all;
  std::vector<double> took;
  std::vector<TimedRun> recent;
  for (const auto& record : records) {
    ++runs[engine::state_now(env, record)];
    for (const auto& state : kStates) all.*state.of += record.counts.*state.of;
    if (record.started && record.ended) took.push_back(seconds(*record.ended - *record.started));
    if (record.ended && env.wall() - *record.ended > kTellsFor) continue;
    BERTH_ASSIGN(auto run, timed(context, record));
    recent.push_back(std::move(run));
  }
  out.begin("berth_runs", "gauge", "Runs that are recorded here.");
  for (const auto& [state, count] : runs) out.add({{"state", state}}, static_cast<double>(count));
  out.begin("berth_tasks", "gauge", "Tasks of all these runs.");
  for (const auto& state : kStates)
    out.add({{"state", state.name}}, static_cast<double>(all.*state.of));
  out.begin("berth_run_seconds", "histogram", "The duration of runs that have ended.");
  out.add({}, kBounds, took);
  out.begin("berth_run_tasks", "gauge",
            "Tasks of each run that is under way or has ended within the last hour.");
  for (const auto& run : recent)
    for (const auto& state : kStates)
      if (const auto count = run.record.counts.*state.of; count > 0)
        out.add({{"run", run.record.name}, {"kind", run.record.kind}, {"state", state.name}},
                static_cast<double>(count));
  out.begin("berth_run_failures", "gauge",
            "Failed tasks of such a run by the cause of the last attempt's end.");
  for (const auto& run : recent)
    for (const auto& [cause, count] : run.failures)
      out.add({{"run", run.record.name}, {"cause", cause}}, static_cast<double>(count));
  out.begin("berth_task_wait_seconds", "histogram",
            "The time from the submission of such a run to the last start of each task.");
  for (const auto& run : recent) out.add({{"run", run.record.name}}, kBounds, run.waited_s);
  out.begin("berth_task_run_seconds", "histogram",
            "The time from the last start of each task of such a run to its end.");
  for (const auto& run : recent) out.add({{"run", run.record.name}}, kBounds, run.ran_s);
  return {};
}

/// The number of commits is in the index of SQLite's write-ahead log: its third word grows by one
/// with each (https://www.sqlite.org/walformat.html, "WAL-Index Header"). It begins anew when the
/// last process that has the store open leaves it, as a counter may. Of PostgreSQL nothing is told.
void add_store(os::Env& env, const engine::Context& context, api::Exposition& out) {
  constexpr std::int64_t kPlace = 8;  // bytes
  std::uint32_t commits = 0;
  const std::string database = engine::database_file(context.state_directory);
  const auto index = env.open_read(database + "-shm");
  const auto bytes = index ? env.read_at(*index, kPlace, sizeof commits)
                           : Result<std::string>(std::unexpected(index.error()));
  if (!bytes || bytes->size() != sizeof commits) return;
  std::memcpy(&commits, bytes->data(), sizeof commits);
  out.begin("berth_store_commits_total", "counter",
            "Commits since the store was last left by all processes.");
  out.add({}, commits);
  const auto status = env.status(database);
  if (!status) return;
  out.begin("berth_store_bytes", "gauge", "Size of the store's file.");
  out.add({}, static_cast<double>(status->size));
}

void add_devices(const engine::MachineReport& report, api::Exposition& out) {
  struct Figure {
    std::string_view name, help;
    double (*of)(const machine::DeviceShare& total, const machine::DeviceShare& free);
  };
  constexpr Figure kFigures[] = {
      {"berth_gpu_memory_bytes", "Memory of a GPU in service.",
       [](const auto& total, const auto&) { return static_cast<double>(total.memory); }},
      {"berth_gpu_memory_free_bytes", "The part of it that is not allocated.",
       [](const auto&, const auto& free) { return static_cast<double>(free.memory); }},
      {"berth_gpu_held", "1 if the GPU is allocated, wholly or in part.",
       [](const auto& total, const auto& free) {
         return free.memory < total.memory || free.slots < total.slots || !free.whole ? 1.0 : 0.0;
       }}};
  const auto& known = report.devices.topology.devices;
  for (const auto& figure : kFigures) {
    out.begin(figure.name, "gauge", figure.help);
    for (std::size_t i = 0; i < report.total_devices.size(); ++i) {
      const auto& share = report.total_devices[i];
      const auto device = std::ranges::find(known, share.uuid, &topology::Device::uuid);
      out.add({{"gpu", fmt::format("{}", share.index)},
               {"uuid", share.uuid},
               {"model", device == known.end() ? "" : device->model}},
              figure.of(share, report.free_devices[i]));
    }
  }
  out.begin("berth_gpus_out_of_service", "gauge", "GPUs that are out of service.");
  out.add({}, static_cast<double>(report.devices.health.out_of_service.size()));
}

void add_machine(const engine::MachineReport& report, api::Exposition& out) {
  for (const auto& [name, help, resources] :
       {std::tuple("berth_machine_capacity",
                   "The capacity of this machine: cores, bytes, or a count.",
                   &report.capacity.total),
        {"berth_machine_held", "The part of it that is allocated.", &report.held},
        {"berth_machine_free", "The part of it that is free.", &report.free}}) {
    out.begin(name, "gauge", help);
    report.capacity.total.each([&](std::string_view resource, std::int64_t) {
      out.add({{"resource", resource}}, amount(resource, resources->get(resource)));
    });
  }
  const auto waiting = std::ranges::count_if(report.entries, &machine::LedgerEntry::waiting);
  out.begin("berth_machine_holders", "gauge", "The number of allocations on this machine.");
  out.add({}, static_cast<double>(std::ssize(report.entries) - waiting));
  out.begin("berth_machine_waiting", "gauge", "The number of runs that wait for a part of it.");
  out.add({}, static_cast<double>(waiting));
}

Result<int> metrics(os::Env& env, const MetricsOptions& options) {
  BERTH_ASSIGN(engine::Context context, engine::open_context(env));
  BERTH_ASSIGN(const engine::MachineReport report, engine::machine_report(env));
  api::Exposition out;
  out.begin("berth_info", "gauge", "The version of Berth.");
  out.add({{"version", version()}}, 1);
  BERTH_TRY(add_runs(env, context, out));
  add_store(env, context, out);
  add_machine(report, out);
  add_devices(report, out);
  const std::string text = out.take();
  if (options.file.empty() || options.file == "-") {
    print(text);
    return 0;
  }
  BERTH_TRY(env.replace_user_file(options.file, text));
  return 0;
}

}  // namespace

Command metrics_command() {
  return command("metrics", "Print metrics of runs and this machine for Prometheus", metrics);
}

}  // namespace berth::cli
