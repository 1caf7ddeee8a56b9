// The tasks of a flow, to the loop that drives them: what has become ready is looked up in the
// cache, and brought from there or started in a directory of its own.
#pragma once

#include <deque>
#include <list>
#include <unordered_map>

#include "berth/run/flow_run.h"
#include "berth/run/workload.h"

namespace berth::run {

/// The files of the world that tasks take in, each read once: a run sees one state of them. Holds
/// the latest in the object store; what was collected since is read again.
class Inputs {
 public:
  Inputs(fileset::ObjectStore& cache, std::string folder)
      : cache_(cache), folder_(std::move(folder)) {}
  Result<fileset::Fileset> get(const std::string& path);
  /// Into the store again. stale: it is not what it was.
  Status restore(const std::string& path);

 private:
  fileset::ObjectStore& cache_;
  const std::string folder_;
  std::unordered_map<std::string, fileset::Fileset> known_;
  std::list<fileset::Hold> latest_;  // the newest in front
};

class FlowTasks final : public Workload {
 public:
  FlowTasks(Site& site, store::RunRecord record, FlowProgram program, fileset::ObjectStore cache);

  const Manner& manner() const override { return manner_; }
  Wants wants(const store::TaskRecord& task) const override;
  std::size_t step_of(const store::TaskRecord& task) const override;
  Status take_over(std::span<const store::TaskRecord> tasks) override;
  Result<Next> next() override;
  Result<exec::Launch> launch(const store::TaskRecord& task, Token token) override;
  Status finish(const store::TaskRecord& task, Token token,
                std::vector<store::Change>& changes) override;
  Status ended(const store::TaskRecord& task, Token token, store::TaskState to) override;
  void committed() override;
  bool wants_commit() const override;
  bool complete() const override { return graph_->done(); }

 private:
  /// A task that was not in the cache: all it takes to run it.
  struct Prepared {
    flow::TaskIndex index;
    flow::TaskSpec spec{};
    std::vector<fileset::Fileset> inputs{};  // as spec.inputs
    fileset::Hold hold{};                    // of these
    std::string key{};                       // of its result; "": it has none
    std::optional<Error> error{};            // why it cannot be started
    Token token{};                           // of the last attempt; 0 before the first
    bool adopted = false;                    // that an earlier runner started: inputs unknown
    std::vector<fileset::Fileset> outputs{};
  };

  const flow::Step& step(flow::TaskIndex task) const;
  TaskNumber number_of(const std::string& name, Next& next);
  Status take_ready(Next& next);
  Result<Prepared*> find(const store::TaskRecord& task);
  Status adopt(flow::TaskIndex index, const store::TaskRecord& task);
  std::string depends_of(const Prepared& prepared) const;
  void key(Prepared& prepared, TaskNumber number, const std::string& depends,
           std::vector<store::Change>& changes) const;
  Status sweep_directories(std::span<const store::TaskRecord> tasks);
  Status consider(flow::TaskIndex index, Next& next);
  Result<bool> recall(flow::TaskIndex index, const store::TaskRecord& recorded);
  Status prepare(Prepared& prepared);
  Status hold_inputs(Prepared& prepared);
  void count_unstarted(flow::TaskIndex task, std::int64_t change);
  Status check_inputs(const Prepared& prepared);
  Status check_ours(const std::string& label, std::size_t output, const std::string& path,
                    const fileset::Fileset& there, const fileset::Fileset& wanted);
  std::optional<std::size_t> next_step() const;
  Result<bool> bring(TaskNumber number, Prepared& prepared, const std::string& depends, Next& next);
  Result<std::optional<std::vector<fileset::Fileset>>> find_result(const std::string& key,
                                                                   std::string* origin);
  Status publish(const flow::TaskSpec& spec, const std::vector<fileset::Fileset>& outputs);
  Status publish_one(const flow::TaskSpec& spec, std::size_t output,
                     const fileset::Fileset& content);
  std::string key_of(const std::string& depends, bool shared) const;
  std::string place(const std::string& path) const;
  std::string task_directory(TaskNumber number, Token token) const;

  Site& site_;
  os::Env& env_;
  const std::string directory_;  // the run's own
  const store::RunRecord record_;
  FlowProgram program_;
  fileset::ObjectStore cache_;
  Inputs inputs_;
  Manner manner_;
  std::optional<flow::Graph> graph_;
  std::unordered_map<std::string, TaskNumber> numbers_;  // by name
  std::unordered_map<std::string, store::TaskRecord>
      recorded_;           // of earlier runners: running, final
  std::int64_t last_ = 0;  // number
  std::int64_t seen_ = 0;  // tasks of the graph
  /// Of each step, in the order in which they became ready, those not looked at, and how many are
  /// prepared and not started.
  struct Queue {
    std::deque<flow::TaskIndex> ready;
    std::int64_t unstarted = 0;
  };
  std::deque<flow::TaskIndex> ready_again_;  // that earlier runners have begun: looked at first
  std::vector<Queue> queues_;
  std::vector<std::size_t> by_priority_;                 // steps
  std::unordered_map<std::int64_t, Prepared> prepared_;  // by number
  std::int64_t unstarted_ = 0;                           // of prepared_
  bool starved_ = false;             // of descriptors, until a commit lets go of some
  std::vector<store::Change> late_;  // that came up when a task was launched
  // Of tasks that are done with the next commit: until then a later runner may have to look there.
  std::vector<std::string> emptied_;    // directories
  std::vector<fileset::Hold> closing_;  // of what is recorded with the next commit
};

}  // namespace berth::run
