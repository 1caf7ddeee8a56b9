// An Inbox holds the messages of one agent on the runner's side. Each counts once and in its order,
// whatever connection brought it, and is acknowledged when what came of it is durable.
//
// Pure: it owns what it is given, and refers to nothing. Failure: a number out of order is corrupt.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "berth/agent/protocol/protocol.h"

namespace berth::agent {

class Inbox {
 public:
  /// The agent has answered on a new connection, and says again what it thinks unacknowledged.
  /// corrupt: it has forgotten some of that.
  Status welcome(const Welcome& welcome);
  /// A message that came before is dropped. corrupt: one between is missing.
  Status receive(Numbered numbered);
  /// An end that no agent tells, since the attempt could not be sent to one.
  void refuse(exec::Ended ended) { received_.emplace_back(std::move(ended)); }

  /// The end of this attempt is now waited for.
  void expect(Token token) { outstanding_.insert(token); }
  bool expects(Token token) const { return outstanding_.contains(token); }
  bool has_messages() const { return !received_.empty(); }
  /// Every end that was waited for has been handed out.
  bool idle() const { return outstanding_.empty() && received_.empty(); }
  /// Hands out what has come, at the end of `messages`.
  void take_messages(std::vector<exec::FromWorker>& messages);

  std::int64_t last_taken() const { return handed_out_; }

  /// All that was handed out is durable, but for ends that are held.
  void acknowledge();
  /// The end of an attempt, just handed out, is not acknowledged before it is let go of.
  void hold(Token token);
  void let_go(Token token) { held_.erase(token); }
  /// The number up to which the agent has to be told that all is durable; nullopt: it knows.
  std::optional<std::int64_t> take_acknowledgement();

 private:
  bool welcomed_ = false;
  std::vector<exec::FromWorker> received_;  // and not handed out
  std::set<Token> outstanding_;             // launched or taken over, and their end not handed out
  std::int64_t next_ = 1;                   // the number of the next message
  std::map<Token, std::int64_t> ends_;      // numbers of those that are not acknowledged
  std::map<Token, std::int64_t> held_;
  std::int64_t handed_out_ = 0, acknowledged_ = 0, acknowledged_sent_ = 0;
};

}  // namespace berth::agent
