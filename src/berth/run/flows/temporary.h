// Temporary outputs of a flow (`temp: true`): they go when their last reader is done, from their
// places and from the object store. What stays is the result, marked as gone: it tells what the
// outputs were, so that readers that are cached stay so. A task that is not cached and reads such
// an output has it made again first.
//
// Removal. In one batch with the end of the last reader the result is marked as gone; when that is
// durable, the files are removed. A runner that is killed in between leaves files whose result says
// that they are gone: whoever next finds that nobody reads them removes them.
//
// Ownership: refers to the FlowRun. Threads: one. Failure: as each function says; what cannot be
// removed stays, and the next run tries again.
#pragma once

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "berth/run/flows/flow_graph.h"
#include "berth/run/flows/flow_task.h"

namespace berth::run {

/// The text of a result whose outputs are gone, and what it was; nullopt: the outputs are not gone.
std::string gone_text(const std::vector<fileset::Fileset>& outputs);
std::optional<std::vector<fileset::Fileset>> parse_gone(std::string_view text);

/// Which objects the results in the store name; it reads each result once.
class LiveObjects {
 public:
  explicit LiveObjects(store::Store& store) : store_(store) {}
  Status update();
  bool contains(const Digest& digest) const { return counts_.contains(digest); }

 private:
  store::Store& store_;
  std::int64_t last_ = 0;
  std::unordered_map<std::string, std::vector<Digest>> of_;  // by the result
  std::unordered_map<Digest, std::int64_t> counts_;
};

class Temporary {
 public:
  Temporary(FlowRun& run, FlowGraph& graph) : run_(run), graph_(graph), live_(*run.context.store) {}

  /// A task with temporary outputs is settled as far as its readers go: it wrote these.
  void wrote(flow::TaskIndex task, std::string key, std::string origin,
             const std::vector<fileset::Fileset>& outputs);

  /// Its result says that the outputs are gone, and nobody has asked for them yet: for its readers
  /// it is finished, for the run it is settled as `to` when they are. `changes`: with that.
  struct Gone {
    TaskNumber number;
    store::TaskState to = store::TaskState::cached;
    bool is_final = false;  // so it is recorded already
    std::vector<store::Change> changes{};
  };
  /// nullopt: it has to be looked at as any other task, or its result is not gone.
  Result<std::optional<std::vector<fileset::Fileset>>> find_gone(flow::TaskIndex task,
                                                                 const std::string& key);
  Status leave_gone(flow::TaskIndex task, Gone gone, const std::string& key,
                    std::vector<fileset::Fileset> outputs);

  /// What is gone of what the task reads is made again, and the task looked at after that. Returns
  /// false where nothing is gone.
  bool await(flow::TaskIndex reader, const flow::TaskSpec& spec, Next& next);
  /// Whether the task is one of those that are made again.
  bool is_made_again(flow::TaskIndex task) const { return made_again_.contains(task.value); }
  /// It was: its readers can be looked at.
  Status was_made_again(flow::TaskIndex task, std::vector<fileset::Fileset> outputs);

  /// What nobody reads any more is settled, and marked as gone.
  void release(Next& next);
  /// Whether files wait for the next commit to be removed; and that it has come.
  bool removes() const { return !removing_.empty(); }
  void committed();

 private:
  struct Written {
    std::string key, origin;
    flow::Words places;
    std::vector<fileset::Fileset> outputs;
  };
  bool is_target(flow::TaskIndex task) const;
  bool is_there(const Written& written);
  /// The tasks of which this one takes something, or for whose steps it waits.
  std::set<std::int64_t> producers_of(flow::TaskIndex task, const flow::TaskSpec& spec) const;
  void let_go(std::int64_t reader);
  bool settle(std::int64_t task, Next& next);

  FlowRun& run_;
  FlowGraph& graph_;
  LiveObjects live_;
  std::unordered_map<std::int64_t, Written> written_;  // these by the task's index
  std::unordered_map<std::int64_t, Gone> gone_;
  std::unordered_set<std::int64_t> made_again_;
  std::unordered_map<std::int64_t, std::vector<flow::TaskIndex>> waiting_;  // by what they wait for
  std::unordered_map<std::int64_t, std::size_t> awaited_;  // of a reader: how many are not there
  // A task whose outputs are gone may still be made again, and reads those of others then.
  std::unordered_map<std::int64_t, std::set<std::int64_t>> would_read_;
  std::unordered_map<std::int64_t, std::size_t> would_be_read_;
  std::vector<std::int64_t> released_;  // by their readers
  std::vector<Written> removing_;
};

}  // namespace berth::run
