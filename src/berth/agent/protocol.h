// What a runner and an agent say to each other: JSON-RPC 2.0, one message a line. The same lines
// make up the agent's journal, so that what nobody has acknowledged is sent again as it stands.
//
//   runner   {"jsonrpc":"2.0","id":"hello","method":"hello","params":{"version":1,"epoch":5,…}}
//   agent    {"jsonrpc":"2.0","id":"hello","result":{"id":"3","first":18,"revision":2,…}}
//   runner   {"jsonrpc":"2.0","method":"launch","params":{"task":1,"token":7,"argv":["true"],…}}
//   agent    {"jsonrpc":"2.0","method":"ended","params":{"number":19,"task":1,"token":7,…}}
//   runner   {"jsonrpc":"2.0","method":"acknowledge","params":{"up_to":19}}
//
// A text may hold any bytes: each byte is sent as the character of that number (U+0000 to U+00FF),
// so that plain text stays plain. Amounts are exact integers: thousandths, bytes, nanoseconds; a
// part of a machine is written as in the ledger (machine/ledger_file.h).
//
// Pure. Failure: invalid, with the field; unknown fields are passed over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/result.h"
#include "berth/exec/messages.h"
#include "berth/machine/ledger.h"

namespace berth::agent {

/// Those of one version understand each other at all.
inline constexpr std::int64_t kProtocolVersion = 1;
/// What an agent has learned within its version, counted up; one that tells none has 0. An older
/// agent passes over the fields that it does not know, so a launch that needs them is not sent.
///   1: `selection` of a launch, where there were only the sizes of slots
///   2: `behind` of a launch, which the runner names only where there is such an agent
inline constexpr std::int64_t kProtocolRevision = 2;
inline constexpr std::int64_t kQueues = 2;  // from which revision an agent takes `behind`

/// The revision that an agent must have for a launch that selects devices so.
std::int64_t revision_for(const machine::DeviceSelection& selection);

// Runner to agent.

/// The first message. A greater epoch displaces the runner of a smaller one.
struct Hello {
  std::int64_t version = kProtocolVersion;
  std::int64_t epoch = 0;
  exec::Environment environment;  // of every launch, but for what that says
  bool beside = false;            // beside the agent's own, not in place of it
};
/// Everything up to this number is durable. The agent repeats it among its own messages.
struct Acknowledge {
  std::int64_t up_to = 0;
};
/// Whether the tasks' output is wanted now; else it is left in their pipes.
struct WantOutput {
  bool wanted = true;
};
struct Keepalive {};  // answered by Alive
/// Free the alloc and end, once idle and acknowledged.
struct Finish {};
/// Idle, keep the alloc for so long, for the runner who comes next.
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
  std::string id;  // of the agent
  machine::Block block;
  machine::AllocId alloc;  // 0: it looks after none
  Duration lease{};
  bool outlive = false;
  std::vector<Attempt> attempts;  // that run, or whose end is not acknowledged
  std::int64_t first = 1;         // number of the first message that is not acknowledged
  std::int64_t revision = kProtocolRevision;
};
/// The connection ends with it.
struct Refusal {
  Error error;
};
struct Alive {};
struct Numbered {
  std::int64_t number = 0;  // 1, 2, … of one agent
  exec::FromWorker message;
};
using Answer = std::variant<Welcome, Refusal, Alive, Numbered, Acknowledge>;

// Without the line's end.
std::string encode(const Call& call);
std::string encode(const Answer& answer);
std::string encode(std::int64_t number, const exec::FromWorker& message);  // Numbered

Result<Call> decode_call(std::string_view line);
Result<Answer> decode_answer(std::string_view line);

}  // namespace berth::agent
