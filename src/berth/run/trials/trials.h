// Trials is the workload of an experiment, and of a command, which is one trial. Where the search
// learns from trials, it is asked for the next one when the last one has found a place to run.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "berth/experiment/constraint.h"
#include "berth/experiment/proposers/proposer.h"
#include "berth/experiment/stopping/early_stop.h"
#include "berth/run/drive/workload.h"
#include "berth/run/trials/checkpoint_copies.h"
#include "berth/run/trials/enqueued.h"
#include "berth/run/trials/external_proposer.h"

namespace berth::run {

/// The words of a trial's command, with what its names stand for.
std::vector<std::string> trial_command(const experiment::Program& program,
                                       const std::string& run_directory,
                                       const store::TaskRecord& task);

/// The name in a trial's command that stands for its checkpoint directory.
inline constexpr std::string_view kCheckpoint = "checkpoint";

class Trials final : public Workload {
 public:
  Trials(Context& context, const store::RunRecord& record, experiment::Program program);

  const RunOptions& options() const override { return options_; }
  ResourceRequest request(const store::TaskRecord& task, std::int64_t attempt) const override;
  Status take_over(std::span<const store::TaskRecord> tasks) override;
  Result<Next> next() override;
  Result<exec::Launch> launch(const store::TaskRecord& task, Token token,
                              std::int64_t attempt) override;
  bool on_metric(const store::TaskRecord& task, const exec::Metric& metric) override;
  std::vector<Token> take_hopeless() override;
  std::optional<Mono> hopeless_at() const override;
  std::optional<std::string> cut_short(const exec::Ended& ended) override;
  Result<bool> finish(const store::TaskRecord& task, Token token,
                      std::vector<store::Change>& changes, bool later) override;
  Status ended(const store::TaskRecord& task, Token token, store::TaskState to) override;
  bool complete() const override { return complete_; }
  bool take_news() override;
  std::vector<Finished> turn() override;
  void committed() override;
  bool busy() const override;
  std::optional<Underway> reading() const override;

 private:
  enum class Stand : std::uint8_t { waiting, running, over };
  struct Cut {
    TaskNumber task;
    std::string because;
    bool asked = false;  // this runner has asked the attempt to end
  };

  void stand(TaskNumber task, Stand to);
  void started(TaskNumber task);
  void tell(const store::TaskRecord& task);
  void tell_earlier();
  void add(experiment::Proposal proposal, Next& next);
  Status add_proposed(Next& next);
  Status ask_external(Next& next);
  Status add_enqueued(Next& next);
  Status last_of_all(Next& next);
  void consider_best(const store::TaskRecord& task);
  Status recall_reports(const store::TaskRecord& task);

  Status give_input(exec::Launch& launch);
  Status offer_module(const std::string& directory, exec::Environment& environment);
  bool names(std::string_view name) const;
  std::string checkpoint(const std::string& label) const;
  Result<bool> has_checkpoint(const std::string& label, const std::string& parent);
  void count_level(const std::string& label);
  Status drop_unrecorded(std::span<const store::TaskRecord> tasks);
  void forget_checkpoints();
  std::string parameter_file(const store::TaskRecord& task) const;

  Context& context_;
  os::Env& env_;
  const std::string directory_;  // of the run
  const store::RunRecord record_;
  const experiment::Program program_;
  const RunOptions options_;
  std::unique_ptr<experiment::Proposer> proposer_;  // null: all trials are known from the start
  std::optional<ExternalProposer> external_;
  Enqueued enqueued_;
  std::optional<experiment::EarlyStopper> stopper_;
  std::unordered_map<std::int64_t, Cut> cut_;  // attempts that the policy ends, by token
  std::map<Token, Mono> judged_at_;            // of those, which reported: when they are judged
  std::set<std::pair<Token, std::string>> not_finite_;  // metrics whose last value was not finite
  std::vector<Stand> stands_;                           // of each trial, by number
  std::int64_t waiting_ = 0, running_ = 0;              // trials
  bool module_offered_ = false;                         // that of Auptimizer
  bool complete_ = true;
  bool exhausted_ = true;          // the proposer proposes nothing more
  bool waiting_for_ends_ = false;  // the external proposer waits until a trial has ended
  struct Best {
    experiment::Scored scored;
    std::string label;
    experiment::Values params;
  };
  std::optional<Best> best_;  // where the best trial is to run again, or its checkpoint is kept
  bool best_again_ = false;   // it has run again, or will
  // Of pbt: every trial with a budget has a checkpoint of its own, which begins as a copy.
  std::optional<CheckpointCopies> copies_;
  std::vector<std::int64_t> begun_;  // by level: trials that were added
  bool forgets_ = false;             // some checkpoints are no longer needed
};

}  // namespace berth::run
