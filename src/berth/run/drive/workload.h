// What a run is made of, to the loop that drives it: an experiment's trials or a flow's tasks. The
// loop has the store, the scheduler and the workers; a workload knows what can run next, what a
// task needs, how it is started, and what is left to do when its process has ended.
//
// Ownership: refers to the Context, which outlives it; kept by the loop. Threads: one. Failure: an
// Error of next() ends the run as failed, with what was done kept, but for full and busy, which the
// runner tries again; one of launch() or finish() is the attempt's own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/exec/environment.h"
#include "berth/exec/messages.h"
#include "berth/experiment/program.h"
#include "berth/run/drive/other_threads.h"
#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::run {

/// How the tasks of a run go together.
struct RunOptions {
  std::int64_t parallel = 0;         // side by side at most; 0: as many as fit
  std::uint64_t seed = 0;            // of the pauses before another try
  bool stop_on_failure = false;      // nothing new starts after more failures than allowed
  std::int64_t allow_failures = 0;   // tasks that may fail for good in a run that is done
  bool outlive = false;              // its tasks go on when their runner dies
  std::vector<std::string> asked{};  // not empty: others carry tasks out, and tell these metrics
  std::vector<std::string> score_labels{};  // what the metrics score_2, score_3, … are called
  Duration retain{};                        // for which a run that failed keeps its primary alloc
  bool in_turn = false;                     // a task starts only when next() names it
  bool learns = false;                      // what next() adds depends on how earlier ones ended
  Resources most;                           // that a task of it asks for, of each resource
  std::string gpus{};                       // the only ones that it may use; "": any
  std::vector<machine::DeviceSelection> selections{};  // of its tasks, each once; no default
  bool shares_devices = false;                         // some tasks take a part of a device
  std::optional<experiment::Goal> goal;
  std::vector<experiment::Constraint> constraints{};  // which the best task has to keep
  std::int64_t expected = 0;         // tasks in all, where next() adds them by and by; 0: not known
  std::vector<std::string> steps{};  // whose progress is shown one by one; Workload::step_of()
};

/// What a task asks for.
struct ResourceRequest {
  Resources resources{};
  machine::DeviceSelection selection{};
  std::int64_t priority = 0;
  int retries = 0;
  Duration timeout{};      // of the attempt; 0: none
  bool tolerated = false;  // RunOptions::stop_on_failure does not mean its failure
};

/// What became possible since it was asked last.
struct Next {
  struct Settled {  // without an attempt
    TaskNumber task;
    store::TaskState to = store::TaskState::done;
  };
  std::vector<store::NewTask> added;  // numbered on from the last
  std::vector<TaskNumber> reopened;   // final ones that have to run again
  std::vector<TaskNumber> start;      // what they waited for is there
  std::vector<Settled> settled;
  std::vector<store::Change> changes;  // after all of these
  std::vector<std::string> notes;      // for people
  bool more = false;                   // ask again before long: it has not looked at everything
};

/// What finish() had left for later.
struct Finished {
  Token token;
  Status status{};  // as of finish()
  std::vector<store::Change> changes{};
  std::string note{};  // for people
};

class Workload {
 public:
  virtual ~Workload() = default;

  virtual const RunOptions& options() const = 0;
  /// For the attempt of this number, from 1.
  virtual ResourceRequest request(const store::TaskRecord& task, std::int64_t attempt) const = 0;
  virtual std::size_t step_of(const store::TaskRecord&) const { return 0; }

  /// First of all, with the tasks as recorded.
  virtual Status take_over(std::span<const store::TaskRecord>) { return {}; }
  virtual Result<Next> next() { return Next{}; }
  /// What the worker is told; what it needs in files is there then. full, busy, io: may pass.
  /// Its resources and time limit are those of request(), whatever this says.
  virtual Result<exec::Launch> launch(const store::TaskRecord& task, Token token,
                                      std::int64_t attempt) = 0;
  /// A running attempt reported a metric. Returns false if the metric does not count, because the
  /// attempt had been asked to end before.
  virtual bool on_metric(const store::TaskRecord&, const exec::Metric&) { return true; }
  /// Returns the attempts that are to be asked to end now, because of what they reported.
  virtual std::vector<Token> take_hopeless() { return {}; }
  /// Returns when take_hopeless() is due next; nullopt if no attempt is considered.
  virtual std::optional<Mono> hopeless_at() const { return std::nullopt; }
  /// Returns why the attempt was stopped early; nullopt if it ended by itself before it was asked
  /// to, so that its own end counts.
  virtual std::optional<std::string> cut_short(const exec::Ended&) { return std::nullopt; }
  /// When its process has ended well: adds what follows from it, and says why it is no success all
  /// the same. full, busy: may pass; interrupted: asked to stop. false, where `later` allows it:
  /// it takes long, and turn() will tell.
  virtual Result<bool> finish(const store::TaskRecord&, Token, std::vector<store::Change>&,
                              bool /*later*/) {
    return true;
  }
  /// What is done beside the loop: whether something has come of it since it was asked last, which
  /// turn() or next() tells; what has come of it; and whether there is more to come.
  virtual bool take_news() { return false; }
  virtual std::vector<Finished> turn() { return {}; }
  virtual bool busy() const { return false; }
  /// What is read beside the loop, for tasks that could start then, and what tasks that have ended
  /// are not done without: that which has been under way for the longest.
  virtual std::optional<Underway> reading() const { return std::nullopt; }
  virtual std::optional<Underway> bringing() const { return std::nullopt; }
  /// Asked to stop: of what finish() had left for later, that which was begun before and can be
  /// left to a resume. Tells of it as turn() does, and then the run is not complete().
  virtual std::vector<Finished> leave(Mono /*begun_before*/) { return {}; }
  /// The attempt has ended, and its task is now this; waiting: it will be tried again.
  virtual Status ended(const store::TaskRecord&, Token, store::TaskState) { return {}; }
  /// What its changes name is on the disk when they are recorded.
  virtual Status make_durable() { return {}; }
  /// All changes that it has given are durable. Until then it holds what they name; when that has
  /// become much, it wants a commit.
  virtual void committed() {}
  virtual bool wants_commit() const { return false; }
  /// Whether there are no more tasks to come.
  virtual bool complete() const { return true; }
};

std::unique_ptr<Workload> trials(Context& context, const store::RunRecord& record,
                                 experiment::Program program);
/// corrupt: the record is none of a flow; invalid: the flow can be built no longer.
Result<std::unique_ptr<Workload>> flow_tasks(Context& context, const store::RunRecord& record);

/// What exec has of it, without a database's password.
exec::Environment inherited_environment(os::Env& env);
/// By what a task knows what it is, and we whose it is.
void name_task(exec::Environment& environment, const std::string& run_directory,
               const store::RunRecord& run, const store::TaskRecord& task, Token token,
               std::int64_t attempt);
using exec::set;
/// "BERTH_PARAM_LR".
std::string parameter_variable(std::string_view name);

}  // namespace berth::run
