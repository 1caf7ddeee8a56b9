// An Outbox turns what a runner says to one agent into lines. What is said before the agent has
// answered waits, and what a broken connection may have swallowed is said again on the next one:
// tokens make what is said twice count once. Notices that a later one replaces are sent when due.
//
// Pure but for `send`, which takes each line that is to go now. Failure: a launch that the agent
// cannot be told of has Ended.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/agent/protocol/protocol.h"
#include "berth/exec/unbegun.h"

namespace berth::agent {

class Outbox {
 public:
  static constexpr int kKeepalivesALease = 3;

  explicit Outbox(std::function<void(std::string_view line)> send) : send_(std::move(send)) {}

  /// The agent has answered on a new connection: all but the launches that it knows is said again.
  /// Returns the ends of launches that it would misunderstand.
  std::vector<exec::Ended> open(const Welcome& welcome, Mono now);
  /// The connection is gone.
  void close() { open_ = false; }
  bool is_open() const { return open_; }

  /// Returns its end where the launch can never be sent.
  std::optional<exec::Ended> launch(exec::Launch launch);
  /// `again`: the end of the attempt is waited for, so a later connection is told too.
  void cancel(Token token, bool again);
  void abandon();
  /// The agent may end: this stays the last word on each connection.
  void send_last(const Call& call);
  /// Nothing is said again about an attempt that has ended.
  void ended(Token token);

  void want_output(bool wanted) { output_wanted_ = wanted; }
  /// Sends the notices that are due now, this acknowledgement among them.
  void send_notices(std::optional<std::int64_t> acknowledged, Mono now);
  Mono keepalive_at() const { return keepalive_at_; }

 private:
  struct Sent {
    TaskNumber task;
    std::int64_t revision = 0;  // that the agent needs for it
    std::string line;
  };
  std::optional<exec::Ended> send_launch(Token token, const Sent& launch);
  void send_line(const Call& call);

  std::function<void(std::string_view)> send_;
  bool open_ = false;
  std::int64_t revision_ = 0;  // of the agent
  Duration lease_{};
  std::map<Token, Sent> launches_;  // that have not ended
  std::set<Token> cancelled_;
  bool abandoned_ = false;
  std::optional<Call> last_;
  exec::Unbegun unbegun_;
  bool output_wanted_ = true, output_wished_ = true;  // the agent knows of the latter
  Mono keepalive_at_;
};

}  // namespace berth::agent
