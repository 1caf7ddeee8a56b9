// What berth top shows, gathered again and again: this machine and its ledger, the user's runs and
// their tasks, and the clusters as of their last answers. Reading runs of many tasks takes time; it
// is done so seldom that it takes a twentieth of it at most.
//
// Ownership: refers to the Env. Threads: one. Failure: open() fails where this machine cannot be
// read; what cannot be read later is told in the data, and the last reading stays.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "berth/cli/top/top_clusters.h"
#include "berth/cli/top/top_model.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/task_times.h"
#include "berth/render/machines/machine.h"

namespace berth::cli {

class TopSource {
 public:
  static Result<TopSource> open(os::Env& env);

  /// Reads anew. `state` says which runs need all of their tasks.
  void refresh(TopData& data, const TopState& state);
  TopClusters& clusters() { return clusters_; }
  const engine::MachineReport& machine() const { return machine_; }

 private:
  struct KnownTasks {
    store::Counts counts;
    bool has_all = false;
    std::vector<store::TaskRecord> tasks;  // those that run, or all
    engine::TaskTimes times{};
    Mono read_at{}, again_at{};
  };
  TopSource(os::Env& env, engine::MachineReport machine, TopClusters clusters)
      : env_(&env), machine_(std::move(machine)), clusters_(std::move(clusters)) {}
  Result<std::vector<TopEntry>> entries(const TopState& state);
  TopEntry run_entry(const store::RunRecord& run, std::span<const store::RunRecord> runs,
                     const TopState& state);
  const KnownTasks& tasks_of(const store::RunRecord& run, std::span<const store::RunRecord> runs,
                             bool all);
  TopEntry task_entry(const store::RunRecord& run, const store::TaskRecord& task,
                      const engine::TaskTimes& times) const;
  void add_queue(std::vector<TopEntry>& entries);
  void expect();
  TopEntry entry_of(const machine::LedgerEntry& held) const;
  std::string gpus_of(const std::string& uuids) const;
  std::string user_name(uid_t user) const;
  std::vector<Meter> meters() const;

  os::Env* env_;
  engine::MachineReport machine_;
  TopClusters clusters_;
  std::optional<engine::Context> context_;
  std::map<std::string, KnownTasks> known_;  // by run
  Mono expect_at_{};                         // when starts are worth asking for again
  std::string users_;                        // the text of /etc/passwd
};

}  // namespace berth::cli
