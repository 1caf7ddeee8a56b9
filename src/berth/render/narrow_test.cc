// The wide tables on narrow terminals: lines that fit, with the columns that matter.
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/base/text.h"
#include "berth/engine/queries/trials.h"
#include "berth/render/cells.h"
#include "berth/render/fleets/candidates.h"
#include "berth/render/machines/clusters.h"
#include "berth/render/machines/machine.h"
#include "berth/render/runs/runs.h"
#include "berth/render/runs/trials.h"

namespace berth::render {
namespace {

/// Expects that `text_of` fits views of 60 and 80 columns with these words in the narrower one, and
/// that a view without a width leaves nothing out.
template <typename TextOf>
void expect_fits(const TextOf& text_of, const std::vector<std::string>& important,
                 const std::vector<std::string>& dropped) {
  for (const int width : {60, 80}) {
    const std::string text = text_of(View{.width = width});
    for (const auto line : split(text, '\n'))
      EXPECT_LE(cells(line), static_cast<std::size_t>(width)) << text;
    for (const auto& word : important) EXPECT_TRUE(text.contains(word)) << word << '\n' << text;
  }
  const std::string narrow = text_of(View{.width = 60}), whole = text_of(View{});
  for (const auto& word : dropped) {
    EXPECT_FALSE(narrow.contains(word)) << word << '\n' << narrow;
    EXPECT_TRUE(whole.contains(word)) << word << '\n' << whole;
  }
  EXPECT_FALSE(whole.contains("…")) << whole;
}

Resources amounts(std::int64_t cores, std::int64_t gib, std::int64_t gpus) {
  Resources all;
  all.set(Known::cpu, cores * 1000);
  all.set(Known::mem, gib << 30);
  all.set(Known::gpu, gpus);
  return all;
}

TEST(NarrowTable, Runs) {
  RunList list;
  list.now = Wall(std::chrono::hours(50));
  auto& run = list.runs.emplace_back();
  run.record.name = "resnet-sweep-128";
  run.record.counts = {.waiting = 98765, .running = 64, .done = 1234, .failed = 17};
  run.record.started = Wall(std::chrono::hours(1));
  run.record.ended = Wall(std::chrono::hours(9));
  run.state = "interrupted";
  expect_fits([&](const View& view) { return to_text(list, view); },
              {"resnet-sweep-128", "interrupted", "1234 done"}, {"took", "98765 waiting"});
}

TEST(NarrowTable, Trials) {
  experiment::Program program;
  program.goal = {.metric = "accuracy"};
  std::vector<store::TaskRecord> tasks(3);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    auto& task = tasks[i];
    task.number = {static_cast<std::int64_t>(i + 1)};
    task.label = fmt::format("{}", i + 1);
    task.state = store::TaskState::done;
    for (const char* name : {"learning_rate", "batch_size", "optimizer", "weight_decay"})
      task.params.push_back({name, "0.000123456"});
    task.metrics = {{"accuracy", 0.912345}, {"loss", 0.3}, {"seconds_per_epoch", 12}};
  }
  const auto trials = engine::in_turn(tasks);
  expect_fits([&](const View& view) { return to_text(trials_table(trials, program, 0), view); },
              {"task", "learning_rate", "accuracy", "0.912345", "state", "done"},
              {"weight_decay", "seconds_per_epoch"});
}

TEST(NarrowTable, Machine) {
  engine::MachineReport report;
  report.now = Wall(std::chrono::hours(2));
  report.capacity.total = amounts(64, 512, 2);
  report.capacity.cpu_from = "cpuset of the control group /user.slice/user-1000.slice/session-12";
  for (int core = 0; core < 64; core += 2) report.capacity.cores.push_back(core);
  report.held = amounts(8, 64, 1);
  report.free = amounts(56, 448, 1);
  for (int i = 0; i < 2; ++i) {
    const std::string uuid = fmt::format("GPU-6a1f7c52-8f0e-4b1d-9c3a-00000000000{}", i);
    machine::DeviceShare share;
    share.uuid = uuid;
    share.index = i;
    share.memory = std::int64_t{80} << 30;
    report.devices.shares.push_back(share);
    report.total_devices.push_back(share);
    report.free_devices.push_back(share);
    topology::Device device;
    device.uuid = uuid;
    device.model = "NVIDIA H100 80GB HBM3";
    report.devices.topology.devices.push_back(device);
  }
  auto& entry = report.entries.emplace_back();
  entry.label = "resnet-sweep-128/17";
  entry.holder.pid = 1234567;
  entry.block.resources = amounts(8, 64, 1);
  entry.block.devices = {report.total_devices[0]};
  report.limits = {"by cgroup v2", "", true};
  expect_fits([&](const View& view) { return to_text(report, view); },
              {"GPU", "NVIDIA H100", "80 GiB", "resnet-sweep-128/17", "cpu", "56"},
              {"GPU-6a1f7c52", "1234567"});
  expect_fits([&](const View& view) { return usage_text(report, view); },
              {"cpu", "resnet-sweep-128/17"}, {"GPU-6a1f7c52"});
}

TEST(NarrowTable, Clusters) {
  engine::SlurmProbed slurm{.cluster = "university",
                            .partitions = std::vector<remote::SlurmPartition>{}};
  slurm.partitions->push_back({.name = "gpu-long",
                               .standard = true,
                               .longest = std::chrono::hours(48),
                               .nodes = 128,
                               .idle = 17,
                               .down = 3,
                               .free = amounts(1024, 4096, 24),
                               .total = amounts(4096, 65536, 512),
                               .gpus = {{"a100", 256}, {"h100", 256}}});
  expect_fits([&](const View& view) { return to_text(slurm, view); },
              {"gpu-long*", "idle", "17", "cpu free", "GPUs free", "24 of 512"}, {"256 a100"});
  engine::HostProbed host{"laboratory", "gpu-node-17.example.org", agent::MachineOffer{}};
  host.offer->system = "Linux 6.8.0-45-generic x86_64";
  host.offer->devices = {"NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"};
  host.offer->free.resources = amounts(56, 448, 1);
  host.offer->total.resources = amounts(64, 512, 2);
  expect_fits([&](const View& view) { return to_text(std::vector{host}, view); },
              {"gpu-node-17.example.org", "free", "gpu 1 of 2"}, {"Linux"});
}

TEST(NarrowTable, PlanCandidates) {
  fleet::System system;
  system.servers["chat-70b-premium"];
  fleet::Candidates all{.servers = {"chat-70b-premium"},
                        .accelerators = {"4xH100-SXM", "8xMI300X"},
                        .types = {"H100", "MI300X"},
                        .type_of = {0, 1},
                        .priority = {1},
                        .begin = {0, 1},
                        .all = {{.accelerator = 0,
                                 .replicas = 12,
                                 .batch = 256,
                                 .rate_per_s = 123.4,
                                 .cost = 123456.78,
                                 .value = 9876.5,
                                 .itl_ms = 23.45,
                                 .ttft_ms = 1234.5,
                                 .watts = 33600}},
                        .refusals = {fleet::Refusal{}, fleet::Refusal{}},
                        .pools = {}};
  expect_fits([&](const View& view) { return candidates_text(system, all, view); },
              {"chat-70b-premium", "4xH100-SXM", "replicas", "12", "cost", "123456.78", "why"},
              {"value", "batch"});
}

}  // namespace
}  // namespace berth::render
