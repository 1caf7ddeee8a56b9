// The worker on an alloc elsewhere: an agent there, and the files that its tasks take along and
// leave. What a task needs is there before it is launched, what it leaves is here before its end is
// told; to the loop it is a worker like any other. A folder that both machines share is noticed,
// and used as it is.
//
// Paths here stand there below the place's work/, but for shared ones; words and variables that
// name them are changed accordingly.
//
// DIR here (0700): place.json, what was left out of a folder, and what outpost_record.h tells of:
// by these a later runner goes on.
//
// Ownership: refers to Env. Threads: one. Failure: as Workplace has it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/agent/link.h"
#include "berth/exec/unbegun.h"
#include "berth/remote/courier.h"
#include "berth/remote/door.h"

namespace berth::remote {

/// What all tasks of a cluster have around them.
struct Surroundings {
  exec::Environment environment;
  std::string prescript, postscript;  // for /bin/sh, in the task's own process; "": none
};

struct OutpostOptions {
  Place place;
  AgentFile agent;
  std::string directory;                        // here, of this Outpost alone
  std::string root;                             // here: what lies below is shared when this is
  std::string store;                            // the object store here
  Duration lease = std::chrono::minutes(2);     // that the agent was given
  Duration patience = std::chrono::minutes(2);  // with one that does not answer
  std::int64_t epoch = 0;
  bool shares = true;      // folders that both machines have are looked for
  bool confirmed = false;  // an experiment's folder is sent whatever its size
  Surroundings surroundings;
  std::shared_ptr<Holders> holders = {};  // of all Outposts of this runner
};

class Outpost final : public agent::Attached {
 public:
  /// On a new alloc, or on one that an earlier runner left. An error is lost().
  static std::unique_ptr<Outpost> open(os::Env& env, OutpostOptions options);

  void tell(const exec::ToWorker& message) override;
  void set_reading(bool reads_output) override { link_->set_reading(reads_output); }
  void take_messages(std::vector<exec::FromWorker>& messages) override;
  bool idle() const override;
  void acknowledge() override;
  void finish() override;
  void retain(Duration time) override;
  std::string doing() const override;
  std::optional<Error> lost() const override;

  bool ready() const override { return link_->ready(); }
  bool queues() const override { return link_->queues(); }
  const agent::Welcome& agent() const override { return link_->agent(); }
  std::optional<Error> cut() const override { return link_->cut(); }
  void lose(Error because) override { link_->lose(std::move(because)); }

 private:
  bool wrapped() const;
  struct Leaving {  // an end that waits for what the attempt left
    exec::Ended ended;
    std::set<std::string> paths;
    std::optional<Error> failed;
  };
  Outpost(os::Env& env, OutpostOptions options);
  void advance();
  void hear(Outcome outcome);
  bool settled(const std::string& root);
  std::optional<Error> stage(const exec::Launch& launch, bool& ready);
  void drop(std::size_t staged, exec::Cause cause, std::string detail);
  void refuse(const exec::Launch& launch, exec::Cause cause, std::string detail);
  void depart(exec::Launch launch);
  void forget_what_never_began();
  void tell_left_out(const std::string& text);
  void on_ended(exec::Ended ended, std::vector<exec::FromWorker>& messages);
  void forget(Token token);
  void tell_ends(std::vector<exec::FromWorker>& messages);
  std::string root_of(const std::string& path) const;
  std::string there(const std::string& path) const;

  os::Env& env_;
  OutpostOptions options_;
  std::unique_ptr<agent::Link> link_;
  std::unique_ptr<Courier> courier_;
  std::optional<Error> broken_;
  bool forgotten_ = false;

  std::map<std::string, bool> shared_;                   // by root
  std::map<std::string, std::string> asked_;             // nonce of a root, while it is looked for
  std::map<std::string, std::optional<Error>> brought_;  // by path here
  exec::Unbegun unbegun_;
  std::vector<exec::Launch> staged_;  // in the order of their launch
  std::map<Token, std::vector<std::string>> brings_;
  std::set<Token> earlier_;  // recorded by an earlier runner, until the agent has answered
  std::map<Token, std::vector<std::string>> litter_;  // there, of attempts that run
  std::map<Token, Leaving> leaving_;
  std::string left_out_;  // of the folder that was sent, for people
  std::vector<exec::FromWorker> pending_;
  os::Timer wakes_{env_.loop(), [] {}};  // there are messages to take
};

}  // namespace berth::remote
