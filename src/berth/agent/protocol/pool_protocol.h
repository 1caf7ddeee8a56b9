// The messages between a runner and `berth-agent pool` of a machine: the runner asks, the pool
// answers, one request at a time, a line each, JSON-RPC 2.0 as in protocol.h. The pool keeps a
// place in its queue for who waits; the place ends with the connection.
//
//   {"jsonrpc":"2.0","id":"offer","method":"offer","params":{}}
//   {"jsonrpc":"2.0","id":"offer","result":{"host":"box","total":"cpu=8000 0:0:1000,… ",…}}
//   {"jsonrpc":"2.0","id":"lease","method":"lease","params":{"id":"5f…","resources":"cpu=1000 ",…}}
//   {"jsonrpc":"2.0","id":"lease","result":{"directory":"/home/a/…","block":"…"}}
//   {"jsonrpc":"2.0","id":"lease","error":{"code":-32000,"message":"…","data":{"kind":"busy"}}}
//
// Everything here is pure. A line that is no message is refused as `invalid`, with the field.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::agent {

struct AskOffer {};
/// Asks for a part of the machine for an agent of its own. The pool answers the same id alike
/// again, so whoever got no answer may repeat the request.
struct AskLease {
  std::string id;  ///< Letters and digits.
  machine::AllocRequest ask;
  Duration lease{};
  bool outlive = false;
  bool waits = false;  ///< It keeps a place in the queue while the connection stands.
};
using PoolCall = std::variant<AskOffer, AskLease>;

struct Holder {
  std::string label;
  Resources resources;
  bool waiting = false;
};
struct MachineOffer {
  std::string host, version, system;  // "box", "1.2.3", "Linux 6.1.0 x86_64"
  machine::Block free, total;
  std::vector<std::string> devices{};  ///< The model of each: "NVIDIA H100 80GB HBM3".
  std::vector<Holder> holders{};
  std::vector<std::string> notes;  ///< They say what could not be read.
};
struct Leased {
  std::string directory;  ///< agent/ within it is the agent's own, work/ goes with it.
  machine::Block block;
};
using PoolAnswer = std::variant<MachineOffer, Leased, Error>;

// Lines are written and read without their end.
std::string encode(const PoolCall& call);
std::string encode(const PoolAnswer& answer);
Result<PoolCall> decode_pool_call(std::string_view line);
Result<PoolAnswer> decode_pool_answer(std::string_view line);

}  // namespace berth::agent
