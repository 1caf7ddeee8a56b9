// The tasks of a flow, to the loop that drives them: what has become ready is looked up in the
// cache, and brought from there or started in a directory of its own. Its parts are the graph with
// what is ready (FlowGraph), what tasks take in (Inputs) and what they leave (Deliveries).
//
// Ownership, threads and failure as Workload has them.
#pragma once

#include <deque>
#include <unordered_map>

#include "berth/run/drive/workload.h"
#include "berth/run/flows/deliveries.h"
#include "berth/run/flows/dependencies.h"
#include "berth/run/flows/flow_graph.h"
#include "berth/run/flows/inputs.h"
#include "berth/run/flows/temporary.h"

namespace berth::run {

class FlowTasks final : public Workload {
 public:
  FlowTasks(Context& context, store::RunRecord record, FlowProgram program,
            fileset::ObjectStore cache);

  const RunOptions& options() const override { return options_; }
  ResourceRequest request(const store::TaskRecord& task, std::int64_t attempt) const override;
  std::size_t step_of(const store::TaskRecord& task) const override;
  Status take_over(std::span<const store::TaskRecord> tasks) override;
  Result<Next> next() override;
  Result<exec::Launch> launch(const store::TaskRecord& task, Token token,
                              std::int64_t attempt) override;
  Result<bool> finish(const store::TaskRecord& task, Token token,
                      std::vector<store::Change>& changes, bool later) override;
  bool take_news() override;
  std::vector<Finished> turn() override;
  bool busy() const override;
  std::optional<Underway> reading() const override { return inputs_.oldest(); }
  std::optional<Underway> bringing() const override { return deliveries_.oldest(); }
  std::vector<Finished> leave(Mono begun_before) override;
  Status ended(const store::TaskRecord& task, Token token, store::TaskState to) override;
  Status make_durable() override { return run_.cache.make_durable(); }
  void committed() override;
  bool wants_commit() const override;
  bool complete() const override { return graph_.graph().done() && !left_; }

 private:
  Result<PreparedTask*> find(const store::TaskRecord& task);
  Status consider(flow::TaskIndex index, Next& next);
  Status recall(flow::TaskIndex index, const store::TaskRecord& recorded, Next& next);
  struct Lookup {
    std::string depends;  // a record of what it depends on
    std::string key{}, origin{};
    std::optional<Delivery> found{};                      // its outputs; neither: it has to run
    std::optional<std::vector<fileset::Fileset>> gone{};  // or what they were
  };
  Result<Lookup> look_up(flow::TaskIndex index, PreparedTask& prepared, Next& next);
  Status take_up(flow::TaskIndex index, TaskNumber number, Next& next);
  Status check_and_start(TaskNumber number, PreparedTask prepared, std::string depends, Next& next);
  Status start(TaskNumber number, PreparedTask prepared, Next& next);
  Status learn(PreparedTask& prepared, const store::TaskRecord& task, const std::string& directory);
  /// A result, brought to its places or not. Fails as next() does, and is then asked for again.
  using Brought = std::move_only_function<Status(Delivery&, Status placed, Next&)>;
  Status bring(flow::TaskIndex task, Delivery delivery, Brought then);
  Status conclude(PreparedTask& prepared, const std::string& label, Delivery& delivery,
                  Status placed, std::vector<store::Change>& changes);
  void close(std::vector<fileset::Hold>& holds);

  FlowRun run_;
  RunOptions options_;
  FlowGraph graph_;
  Temporary temporary_;
  std::unordered_map<std::int64_t, PreparedTask> prepared_;  // by number
  std::vector<store::Change> late_;                          // that came up at a launch
  struct Came {                                              // for next() to go on with
    flow::TaskIndex task;
    Delivery delivery;
    std::optional<Status> placed;  // by another thread; nullopt: not yet
    Brought then;
  };
  std::deque<Came> came_;
  bool left_ = false;  // a resume has to bring something to its place
  /// Until the next commit a later runner may have to look there.
  struct UntilCommit {
    std::vector<std::string> emptied;    // directories of tasks that are done
    std::vector<fileset::Hold> closing;  // of what is recorded
    bool starved = false;                // of descriptors, which closing these frees
  } until_commit_;
  Dependencies dependencies_;
  Inputs inputs_;
  Deliveries deliveries_;  // these two go first
};

}  // namespace berth::run
