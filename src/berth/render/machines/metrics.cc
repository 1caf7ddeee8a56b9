#include "berth/render/machines/metrics.h"

#include <algorithm>
#include <array>

#include "berth/base/exposition.h"
#include "berth/base/units.h"
#include "berth/error.h"

namespace berth::render {
namespace {

// seconds
constexpr std::array kBounds{0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14'400.0, 86'400.0};

struct CountedState {
  std::string_view name;
  std::int64_t store::Counts::* of;
};
constexpr CountedState kStates[] = {
    {"waiting", &store::Counts::waiting}, {"running", &store::Counts::running},
    {"done", &store::Counts::done},       {"cached", &store::Counts::cached},
    {"skipped", &store::Counts::skipped}, {"failed", &store::Counts::failed},
    {"stopped", &store::Counts::stopped}};

/// An amount of a resource in its unit: cores, bytes, a count.
double amount(std::string_view resource, std::int64_t value) {
  return static_cast<double>(value) / (measure(resource) == Measure::milli ? 1000 : 1);
}

void add_runs(const engine::Metrics& metrics, Exposition& out) {
  out.begin("berth_runs", "gauge", "Runs that are recorded here.");
  for (const auto& [state, count] : metrics.runs)
    out.add({{"state", state}}, static_cast<double>(count));
  out.begin("berth_tasks", "gauge", "Tasks of all these runs.");
  for (const auto& state : kStates)
    out.add({{"state", state.name}}, static_cast<double>(metrics.tasks.*state.of));
  out.begin("berth_run_seconds", "histogram", "The duration of runs that have ended.");
  out.add({}, kBounds, metrics.run_seconds);
  out.begin("berth_run_tasks", "gauge",
            "Tasks of each run that is under way or has ended within the last hour.");
  for (const auto& run : metrics.recent)
    for (const auto& state : kStates)
      if (const auto count = run.record.counts.*state.of; count > 0)
        out.add({{"run", run.record.name}, {"kind", run.record.kind}, {"state", state.name}},
                static_cast<double>(count));
  out.begin("berth_run_failures", "gauge",
            "Failed tasks of such a run by the cause of the last attempt's end.");
  for (const auto& run : metrics.recent)
    for (const auto& [cause, count] : run.failures)
      out.add({{"run", run.record.name}, {"cause", cause}}, static_cast<double>(count));
  out.begin("berth_task_wait_seconds", "histogram",
            "The time from the submission of such a run to the last start of each task.");
  for (const auto& run : metrics.recent) out.add({{"run", run.record.name}}, kBounds, run.waited_s);
  out.begin("berth_task_run_seconds", "histogram",
            "The time from the last start of each task of such a run to its end.");
  for (const auto& run : metrics.recent) out.add({{"run", run.record.name}}, kBounds, run.ran_s);
}

void add_store(const engine::Metrics& metrics, Exposition& out) {
  if (metrics.commits) {
    out.begin("berth_store_commits_total", "counter",
              "Commits since the store was last left by all processes.");
    out.add({}, *metrics.commits);
  }
  if (metrics.store_bytes) {
    out.begin("berth_store_bytes", "gauge", "Size of the store's file.");
    out.add({}, static_cast<double>(*metrics.store_bytes));
  }
}

void add_devices(const engine::MachineReport& report, Exposition& out) {
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

void add_machine(const engine::MachineReport& report, Exposition& out) {
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

}  // namespace

std::string to_text(const engine::Metrics& metrics) {
  Exposition out;
  out.begin("berth_info", "gauge", "The version of Berth.");
  out.add({{"version", version()}}, 1);
  add_runs(metrics, out);
  add_store(metrics, out);
  add_machine(metrics.machine, out);
  add_devices(metrics.machine, out);
  return out.take();
}

}  // namespace berth::render
