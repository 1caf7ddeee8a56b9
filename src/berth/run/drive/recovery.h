// Recovery is what a runner does about the agents that an earlier runner of the same run left: it
// finds them on this machine and elsewhere, takes those that live over with what they run, reads
// from the journals of those that do not what had come to an end, and waits for those that do not
// answer for as long as tasks may run there.
//
// Ownership: a RecoveredAgents owns the clients of its agents until they are taken over. Threads:
// one. Failure: find_agents() is busy where an agent lives here and does not listen.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/run/drive/attempts.h"

namespace berth::run {

/// Agents of a run that a previous runner started, as found when this runner starts.
struct RecoveredAgents {
  struct Agent {
    std::string directory;  // of its lease on this machine; "": it is elsewhere
    std::string machine;
    std::unique_ptr<agent::AgentClient> client;
    std::vector<schedule::Earlier> attempts;  // that it runs, or may run
    std::string silence{};                    // that it does not answer, and why; "": it does
    std::string tasks{};                      // of a silent one: the labels of what it may run
    Duration time_left{};                     // of a silent one: for which that may go on
  };
  std::vector<Agent> alive;                      // each accepts one runner, or may yet answer
  std::vector<exec::FromWorker> unacknowledged;  // messages of dead agents that no store holds yet
  std::vector<std::string> dead_directories;     // may be removed after the next commit
  std::vector<Token> tokens;                     // attempts that run, or whose end is known
};

using Note = std::function<void(const std::string&)>;
/// Attaches to all of them. Those elsewhere of which it is not known what they run are waited for
/// at most `most`. busy: one lives here and does not listen.
Result<RecoveredAgents> find_agents(Context& context, const store::RunRecord& record, Duration most,
                                    const Note& note);

class Recovery {
 public:
  Recovery(ActiveRun& run, Workers& workers, Leases& leases, Attempts& attempts,
           RecoveredAgents found)
      : run_(run),
        workers_(workers),
        leases_(leases),
        attempts_(attempts),
        found_(std::move(found)) {}

  /// Attempts that the take-over leaves running.
  const std::vector<Token>& tokens() const { return found_.tokens; }
  /// What the earlier runner left goes on: agents become workers, and the last messages of dead
  /// ones are dealt with. Once, after the take-over.
  void join();
  /// Of silent agents that answer now: what they do not run has to be run again. Once the run is
  /// `stopping`, what they do run is cancelled.
  void reconcile(bool stopping);
  /// A worker is lost: its journal tells what had come to an end, and whatever else ran there
  /// starts again elsewhere.
  void reap(const WorkerSlot& slot);
  /// All that was read from the journals is durable: removes them.
  void forget_dead();

 private:
  void attach(RecoveredAgents::Agent& agent);

  ActiveRun& run_;
  Workers& workers_;
  Leases& leases_;
  Attempts& attempts_;
  RecoveredAgents found_;
};

}  // namespace berth::run
