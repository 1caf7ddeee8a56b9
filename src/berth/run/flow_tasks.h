// The tasks of a flow, to the loop that drives them: what has become ready is looked up in the
// cache, and brought from there or started in a directory of its own.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <unordered_map>

#include "berth/os/aside.h"
#include "berth/run/delivery.h"
#include "berth/run/flow_run.h"
#include "berth/run/other_threads.h"
#include "berth/run/workload.h"

namespace berth::run {

/// An input as it was captured beside the loop, and the store that has to make it durable.
struct Reading {
  fileset::ObjectStore store;
  fileset::Captured captured;
};

/// The files of the world that tasks take in, each read once: a run sees one state of them. They
/// are read beside the loop, however small: a file system that hangs holds nobody up there. Holds
/// the latest in the object store; what was collected since is read again.
class Inputs {
 public:
  Inputs(os::Env& env, fileset::ObjectStore& cache, std::string folder)
      : env_(env), cache_(cache), folder_(std::move(folder)) {}
  /// Waits for what was not handed over; interrupted: a stop signal came meanwhile.
  Result<fileset::Fileset> get(const std::string& path);
  /// Into the store again. stale: it is not what it was.
  Status restore(const std::string& path);
  /// Whether get() would have to wait: then it is to be read elsewhere, and handed over here.
  bool missing(const std::string& path) const {
    return !known_.contains(path) && !failed_.contains(path);
  }
  void take(const std::string& path, Result<Reading> read);
  /// What reads it on another thread, of which nothing is kept here.
  std::move_only_function<Result<Reading>(os::Env& there)> reader(const std::string& path) const;

  std::string place(const std::string& path) const {
    return path.starts_with('/') ? path : folder_ + "/" + path;
  }

 private:
  Status read_now(const std::string& path);

  os::Env& env_;
  fileset::ObjectStore& cache_;
  const std::string folder_;
  std::unordered_map<std::string, fileset::Fileset> known_;
  std::unordered_map<std::string, Error> failed_;  // of what was captured elsewhere; told once
  std::list<fileset::Hold> latest_;                // the newest in front
  std::unique_ptr<os::Aside> aside_;               // for read_now(); goes first
};

class FlowTasks final : public Workload {
 public:
  FlowTasks(Site& site, store::RunRecord record, FlowProgram program, fileset::ObjectStore cache);

  const RunOptions& options() const override { return options_; }
  ResourceRequest request(const store::TaskRecord& task) const override;
  std::size_t step_of(const store::TaskRecord& task) const override;
  Status take_over(std::span<const store::TaskRecord> tasks) override;
  Result<Next> next() override;
  Result<exec::Launch> launch(const store::TaskRecord& task, Token token) override;
  Result<bool> finish(const store::TaskRecord& task, Token token,
                      std::vector<store::Change>& changes, bool later) override;
  void watch(std::vector<os::Watch>& watches) const override;
  std::vector<Finished> turn() override;
  bool busy() const override;
  std::optional<Underway> reading() const override { return reads_.oldest(); }
  std::optional<Underway> bringing() const override { return outputs_.oldest(); }
  std::vector<Finished> leave(Mono begun_before) override;
  Status ended(const store::TaskRecord& task, Token token, store::TaskState to) override;
  Status make_durable() override { return cache_.make_durable(); }
  void committed() override;
  bool wants_commit() const override;
  bool complete() const override { return graph_->done() && !left_; }

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
  /// A result, brought to its places or not. Fails as next() does, and is then asked for again.
  using Brought = std::move_only_function<Status(Delivery&, Status placed, Next&)>;
  using Delivered = std::move_only_function<void(Delivery, Status)>;
  /// What a task wrote, on its way from the object store to its places.
  struct Placing {
    TaskNumber task;
    std::string label;
    std::vector<fileset::Fileset> outputs{};
    Mono since{};
    std::optional<Delivery> waits{};  // for that of an earlier attempt, which might come last
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
  Status recall(flow::TaskIndex index, store::TaskRecord recorded, Next& next);
  Status take_up(flow::TaskIndex index, TaskNumber number, Next& next);
  void start(TaskNumber number, Prepared prepared, Next& next);
  Result<bool> prepare(Prepared& prepared, bool later);
  Status hold_inputs(Prepared& prepared);
  void count_unstarted(flow::TaskIndex task, std::int64_t change);
  Status judge(Delivery& delivery);
  Status place_here(Delivery& delivery);
  Status conclude(Prepared& prepared, const std::string& label, Delivery& delivery, Status placed,
                  std::vector<store::Change>& changes);
  std::optional<std::size_t> next_step() const;
  Status bring(flow::TaskIndex task, Delivery delivery, Brought then, Next& next);
  std::string places_of(const flow::TaskSpec& spec) const;
  Status gather_aside(Delivery delivery, Delivered then);
  Status place_aside(Delivery delivery, Delivered then);
  Status deliver_aside(Token token, Placing placing, Delivery delivery);
  bool is_last(TaskNumber task, Token token) const;
  bool is_placing(TaskNumber task) const;
  void place_waiting(TaskNumber task);
  void delivered(Token token, const Placing& placing, Delivery& delivery, Status status);
  void keep(Prepared& prepared, const std::string& label, std::vector<fileset::Fileset> outputs,
            std::vector<store::Change>& changes) const;
  Status read_aside(const std::string& world);
  std::deque<flow::TaskIndex>& queue_of(flow::TaskIndex task);
  /// What a task wrote, held; nullopt: it is not there, or not whole any more.
  Result<std::optional<Delivery>> find_result(const std::string& key, std::size_t outputs,
                                              std::string* origin);
  std::string key_of(const std::string& depends, bool shared) const;
  std::string task_directory(TaskNumber number, Token token) const;

  Site& site_;
  os::Env& env_;
  const std::string directory_;  // the run's own
  const store::RunRecord record_;
  FlowProgram program_;
  fileset::ObjectStore cache_;
  Inputs inputs_;
  RunOptions options_;
  std::optional<flow::Graph> graph_;
  std::unordered_map<std::string, TaskNumber> numbers_;  // by name
  std::unordered_map<std::string, store::TaskRecord>
      recorded_;           // of earlier runners: running, final
  std::int64_t last_ = 0;  // number
  std::int64_t seen_ = 0;  // tasks of the graph
  bool done_ = false;      // so is the graph, and tasks that it does not have are settled
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
  struct Came {                      // from beside the loop, for next() to go on with
    flow::TaskIndex task;
    std::move_only_function<Status(Next&)> then;
  };
  std::deque<Came> came_;
  std::unordered_map<std::string, std::vector<flow::TaskIndex>> reading_;  // who waits for an input
  std::unordered_map<std::int64_t, Placing> placing_;                      // by token
  std::vector<Finished> finished_;
  bool left_ = false;  // a resume has to bring something to its place
  // Of tasks that are done with the next commit: until then a later runner may have to look there.
  std::vector<std::string> emptied_;    // directories
  std::vector<fileset::Hold> closing_;  // of what is recorded with the next commit
  OtherThreads reads_, outputs_;        // go first
};

}  // namespace berth::run
