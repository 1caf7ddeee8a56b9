// A RemoteWorker is the worker on an alloc of another machine. It joins an agent there
// (AgentClient) with the files of its tasks (TransferQueue): it stages in what a task needs before
// it launches the task, and stages out what the task leaves before it reports the end. It notices a
// folder that both machines share, and uses that as it is.
//
// A path of this machine stands on the other one below work/ in the lease directory, unless it is
// shared. The RemoteWorker changes words and variables of a launch that name such paths.
//
// DIR on this machine (0700) holds place.json, a note of what was left out of a folder, and what
// remote_worker_record.h describes. A later runner goes on by these.
//
// Ownership: it refers to the Env and owns its agent client and its transfers. Threads: one.
// Failure: that of Worker.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/agent/client/remote_agent.h"
#include "berth/exec/unbegun.h"
#include "berth/remote/remote_worker_record.h"
#include "berth/remote/transfer/transfer_queue.h"
#include "berth/remote/transport.h"

namespace berth::remote {

/// What every task of a cluster gets: variables, and text that runs before and after it.
struct TaskEnvironment {
  exec::Environment environment;
  std::string prolog, epilog;  ///< For /bin/sh, in the task's own process; "": none.
};

struct RemoteWorkerOptions {
  LeaseDirectory lease_directory;
  AgentFile agent;
  std::string directory;  ///< DIR, of this RemoteWorker alone.
  std::string root;       ///< On this machine: if the machines share it, then all that is below it.
  std::string store;      ///< The object store on this machine.
  Duration lease = std::chrono::minutes(2);    ///< The lease that the agent was given.
  Duration timeout = std::chrono::minutes(2);  ///< So long an agent that does not answer is tried.
  Duration reconnect{};    ///< Before a connection that broke is made again; 0: ever more slowly.
  std::int64_t epoch = 0;  ///< Of this runner.
  bool shares = true;      ///< The RemoteWorker looks for folders that both machines share.
  bool confirmed = false;  ///< It sends an experiment's folder whatever its size.
  TaskEnvironment task_environment;
  std::shared_ptr<Holders> holders = {};  ///< One for all RemoteWorkers of this runner.
};

class RemoteWorker final : public agent::AgentClient {
 public:
  /// Opens the worker on a new alloc, or on one that an earlier runner left. An error is lost().
  static std::unique_ptr<RemoteWorker> open(os::Env& env, RemoteWorkerOptions options);

  void send(const exec::ToWorker& message) override;
  void set_reading(bool reads_output) override { client_->set_reading(reads_output); }
  void take_messages(std::vector<exec::FromWorker>& messages) override;
  bool idle() const override;
  void acknowledge() override;
  void finish() override;
  void retain(Duration time) override;
  std::string doing() const override;
  std::optional<Error> lost() const override;
  std::optional<DeletedFiles> deleted_files() const override;

  bool ready() const override { return client_->ready(); }
  const agent::Welcome& agent() const override { return client_->agent(); }
  std::optional<Error> cut() const override { return client_->cut(); }
  void lose(Error because) override { client_->lose(std::move(because)); }

 private:
  bool wrapped() const;
  struct StagingOut {  // the end of an attempt, which waits until its outputs are here
    exec::Ended ended;
    std::set<std::string> paths;
    std::optional<Error> failed;
  };
  RemoteWorker(os::Env& env, RemoteWorkerOptions options);
  void advance();
  void on_outcome(Outcome outcome);
  bool settled(const std::string& root);
  std::optional<Error> stage(const exec::Launch& launch, bool& ready);
  void drop(std::size_t staged, exec::Cause cause, std::string detail);
  void refuse(const exec::Launch& launch, exec::Cause cause, std::string detail);
  void submit(exec::Launch launch);
  void forget_what_never_began();
  void note_left_out(const std::string& text);
  void on_ended(exec::Ended ended, std::vector<exec::FromWorker>& messages);
  void forget(Token token);
  void fetch_no_more();
  void report_ends(std::vector<exec::FromWorker>& messages);
  bool has_ended_all() const;
  void count_files();
  void stop_counting() { uncounted_ = counting_ = false; }
  std::string root_of(const std::string& path) const;
  std::string there(const std::string& path) const;

  os::Env& env_;
  RemoteWorkerOptions options_;
  std::unique_ptr<agent::RemoteAgent> client_;
  std::unique_ptr<TransferQueue> transfers_;
  std::optional<Error> broken_;
  bool forgotten_ = false;

  std::map<std::string, bool> shared_;                   // by root
  std::map<std::string, std::string> asked_;             // by root: the nonce that is looked for
  std::map<std::string, std::optional<Error>> brought_;  // by path on this machine
  exec::Unbegun unbegun_;
  std::vector<exec::Launch> staged_;  // that wait for their files, in the order of their launch
  std::map<Token, StageOut> stage_out_;
  std::set<Token> earlier_;  // recorded by an earlier runner, until the agent has answered
  std::map<Token, std::vector<std::string>> scratch_;  // to be removed there after the attempt
  std::map<Token, StagingOut> staging_out_;
  std::vector<Token> not_fetched_;            // attempts that have ended so, until that is durable
  std::optional<std::string> folder_;         // that was sent; below work/
  std::optional<std::string> written_below_;  // where tasks write; below work/, "": in all of it
  bool leaves_outputs_ =
      false;                // stopped attempts whose outputs are not fetched, but were declared
  bool uncounted_ = false;  // an attempt ended since the files that tasks wrote were counted
  bool counting_ = false;   // the other machine counts them
  DeletedFiles deleted_;
  std::string left_out_;  // of the folder that was sent, for people
  std::vector<exec::FromWorker> pending_;
  os::Timer wakes_{env_.loop(), [] {}};  // there are messages to take
  os::Timer fetches_end_{env_.loop(), [this] { fetch_no_more(); }};
  os::Timer count_ends_{env_.loop(), [this] { stop_counting(); }};
};

}  // namespace berth::remote
