// A run that a simulation plays, and who looks on while its runner drives it.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulate/contract.h"
#include "simulate/played_programs.h"

namespace berth::simulate {

struct Run {
  std::string name;
  os::FakeProcess* runner = nullptr;
  std::optional<Result<store::RunRecord>> end;
  std::string waits;
  Mono start_at{}, started_at{};
  Duration lease{};  // and for how long its work outlives it
  bool is_over = false;
  std::optional<PlayedFlow> flow{};  // that it is; none: trials
  bool is_left_to_lease = false;     // a host did not answer when it ended
};

/// Compares what a runner shows with the store.
class Watcher final : public run::Observer {
 public:
  Watcher(Contract& contract, os::FakeProcess& runner, Run& run)
      : contract_(contract), runner_(runner), run_(run) {}
  void on_progress(const run::Progress& progress, Mono) override {
    run_.waits = progress.waiting_for;
    if (std::exchange(is_first_, false) && runner_.stops == 0) contract_.taken_over(run_.name);
  }
  void on_task_end(const run::TaskEnd& end) override { contract_.shown(run_.name, end); }
  void on_output(const exec::Output&) override {}
  void on_note(const std::string& note) override {
    if (note.contains("end with its lease")) run_.is_left_to_lease = true;
    if (contract_.trace) fmt::print("           {}: {}\n", run_.name, note);
  }

 private:
  Contract& contract_;
  os::FakeProcess& runner_;
  Run& run_;
  bool is_first_ = true;
};

/// What a store was told once and may be told again, much later: it must make no difference.
/// `otherwise`: as when an agent that was given up says after all that its task is done.
inline std::vector<store::Change> told_again(std::span<const store::Change> changes,
                                             bool otherwise) {
  std::vector<store::Change> again;
  for (const auto& change : changes) {
    const auto* end = std::get_if<store::AttemptEnded>(&change);
    if (end == nullptr) continue;
    store::AttemptEnded told = *end;
    if (otherwise) {
      told.next = store::TaskState::done;
      told.cause = exec::Cause::ok;
      told.exit_code = 0;
      told.signal = 0;
    }
    again.emplace_back(std::move(told));
  }
  if (again.empty()) return again;  // a metric counts while its attempt runs
  for (const auto& change : changes)
    if (std::holds_alternative<store::MetricSeen>(change)) again.push_back(change);
  return again;
}

}  // namespace berth::simulate
