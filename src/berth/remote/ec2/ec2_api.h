// EC2's query API: calls that are tried again while EC2 is busy or the network away, and what their
// answers say. What a call means to repeat is the caller's: each of ours may be repeated.
//
// Threads: one. Nothing waits; an answer comes within step(), which is to be called after a turn of
// the loop that has called `wake`. Failure: denied (credentials, permissions, the clock), invalid
// (a parameter), not_found (no such instance), busy (no capacity, a limit, a state in which it
// cannot be done now), io (throttled or unreachable for too long, or an answer that is none).
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "berth/os/env.h"
#include "berth/os/loop.h"
#include "berth/remote/cloud/cloud.h"

namespace berth::remote {

using Ec2Parameters = std::vector<std::pair<std::string, std::string>>;

class Ec2Api {
 public:
  using Done = std::move_only_function<void(Result<Xml>)>;

  Ec2Api(os::Env& env, const Cloud& cloud, std::unique_ptr<HttpCalls> http, std::string endpoint)
      : env_(env), cloud_(cloud), http_(std::move(http)), endpoint_(std::move(endpoint)) {}

  /// `done` hears the answer, in a later step(). With DryRun: success is that it would be allowed.
  void call(std::string action, Ec2Parameters parameters, Done done);
  void step();
  /// Called in a turn of the loop, once, when step() has something to do.
  void on_news(std::function<void()> wake) { wake_ = std::move(wake); }
  bool idle() const { return calls_.empty(); }
  /// Why a call is tried again, since the last one that EC2 answered.
  const std::optional<Error>& trouble() const { return trouble_; }
  /// Steps until no call is under way, at most so long. For commands, which have no loop.
  bool finish(Duration most);

 private:
  struct Call {
    std::string action, body;
    Done done;
    Mono deadline;
    Mono again;  // when it is sent (again), while `under_way` is 0
    int tries = 0;
    std::int64_t under_way = 0;  // the number of the request
  };
  struct Verdict {
    Result<Xml> result;
    bool again = false;
  };
  Verdict judge(const Call& call, const HttpAnswer& answer) const;
  void arm();
  void wake();

  os::Env& env_;
  const Cloud& cloud_;
  std::unique_ptr<HttpCalls> http_;
  std::string endpoint_;
  std::vector<Call> calls_;
  std::optional<Error> trouble_;
  std::function<void()> wake_;
  std::deque<os::Poll> sockets_;
  os::Timer due_{env_.loop(), [this] { wake(); }};
};

struct Ec2Instance {
  enum class State : std::uint8_t {
    pending,
    running,
    shutting_down,
    terminated,
    stopping,
    stopped
  };
  std::string id;
  State state = State::pending;
  std::string type = {}, client_token = {};
  std::string address = {};  // public, else private; empty: none yet
  std::string reason = {};   // why it is in its state: "Server.SpotInstanceTermination"
  bool spot = false;
  std::vector<std::pair<std::string, std::string>> tags = {};
};

struct Ec2Page {
  std::vector<Ec2Instance> instances = {};
  std::string next = {};  // token of the next page; empty: it was the last
};

/// Of DescribeInstances or RunInstances. invalid: names what is wrong.
Result<Ec2Page> read_instances(const Xml& answer);
/// Ids of those that DescribeSpotInstanceRequests says are about to be taken away.
std::vector<std::string> read_interrupted(const Xml& answer);
/// "i-" and 8 to 17 lower-case hexadecimal digits.
bool valid_instance_id(std::string_view id);

}  // namespace berth::remote
