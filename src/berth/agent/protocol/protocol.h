// The messages between a runner and an agent: JSON-RPC 2.0, one message a line. The agent's journal
// is made of the same lines, so a message that nobody has acknowledged is sent again as it stands.
//
//   runner   {"jsonrpc":"2.0","id":"hello","method":"hello","params":{"version":1,"epoch":5,…}}
//   agent    {"jsonrpc":"2.0","id":"hello","result":{"id":"3","first":18,"revision":2,…}}
//   runner   {"jsonrpc":"2.0","method":"launch","params":{"task":1,"token":7,"argv":["true"],…}}
//   agent    {"jsonrpc":"2.0","method":"ended","params":{"number":19,"task":1,"token":7,…}}
//   runner   {"jsonrpc":"2.0","method":"acknowledge","params":{"up_to":19}}
//
// protocol.cc describes the fields of each message once; codec.h says how texts and amounts are
// written, and machine/block.h how a block is. An older party passes over fields that it does not
// know, and testdata/ keeps the lines as they have always been.
//
// Everything here is pure. A line that is no message is refused as `invalid`, with the field that
// is not as wanted; whatever another party sends, nothing throws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/result.h"
#include "berth/exec/messages.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::agent {

/// Parties of different versions do not understand each other at all.
inline constexpr std::int64_t kProtocolVersion = 1;
/// The revision counts what agents have learned within a version; an agent that names none has 0.
/// An older agent passes over the fields that it does not know, so a runner does not send it a
/// launch that needs them.
///   1: `selection` of a launch, where there were only the sizes of slots
///   2: `behind` of a launch
///   3: `image` and `network` of a launch
///   4: `sandbox` and `shown` of a launch
///   5: `input` of a launch
inline constexpr std::int64_t kProtocolRevision = 5;
inline constexpr std::int64_t kQueues = 2;  ///< The first revision whose agents take `behind`.

/// The revision that an agent must have to do all that the launch says.
std::int64_t revision_for(const exec::Launch& launch);

// Runner to agent.

/// The first message. A greater epoch displaces the runner of a smaller one.
struct Hello {
  std::int64_t version = kProtocolVersion;
  std::int64_t epoch = 0;
  exec::Environment environment;  ///< Of every launch; what a launch says itself wins.
  bool beside = false;            ///< It is added to the agent's own, not put in its place.
};
/// Everything up to this number is durable. The agent repeats it among its own messages.
struct Acknowledge {
  std::int64_t up_to = 0;
};
/// Says whether the runner wants the tasks' output now; else the agent leaves it in their pipes.
struct WantOutput {
  bool wanted = true;
};
/// The agent answers it with Alive.
struct Keepalive {};
/// The agent frees its alloc and ends, once it is idle and all is acknowledged.
struct Finish {};
/// The agent, though idle, keeps its alloc for so long, for the runner that comes next.
struct Retain {
  Duration time{};
};
using Call = std::variant<Hello, exec::Launch, exec::Cancel, exec::Abandon, Acknowledge, WantOutput,
                          Keepalive, Finish, Retain>;

// Agent to runner.

struct Attempt {
  TaskNumber task;
  Token token;
  bool operator==(const Attempt&) const = default;
};
struct Welcome {
  std::int64_t version = kProtocolVersion;
  std::string id;  ///< The agent's.
  machine::Block block;
  machine::AllocId alloc;  ///< 0: the agent looks after none.
  Duration lease{};
  bool outlive = false;
  std::vector<Attempt> attempts;  ///< They run, or their end is not acknowledged.
  std::int64_t first = 1;         ///< The number of the first message that is not acknowledged.
  std::int64_t revision = kProtocolRevision;
};
/// The agent refuses what the runner wants, and closes the connection.
struct Refusal {
  Error error;
};
struct Alive {};
struct Numbered {
  std::int64_t number = 0;  ///< 1, 2, … of one agent.
  exec::FromWorker message;
};
using Answer = std::variant<Welcome, Refusal, Alive, Numbered, Acknowledge>;

// Lines are written and read without their end.
std::string encode(const Call& call);
std::string encode(const Answer& answer);
/// The same as of a Numbered, which need not be made for it.
std::string encode(std::int64_t number, const exec::FromWorker& message);

/// invalid: the line is no call.
Result<Call> decode_call(std::string_view line);
/// invalid: the line is neither an answer nor a message of an agent.
Result<Answer> decode_answer(std::string_view line);

}  // namespace berth::agent
