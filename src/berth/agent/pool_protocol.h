// What is asked of a machine through `berth-agent pool`, and what it answers: one request and one
// answer at a time, a line each, JSON-RPC 2.0 as in protocol.h. Between them it waits; when the
// connection ends, what waits in its queue ends with it.
//
//   {"jsonrpc":"2.0","id":"offer","method":"offer","params":{}}
//   {"jsonrpc":"2.0","id":"offer","result":{"host":"box","total":"cpu=8000 0:0:1000,… ",…}}
//   {"jsonrpc":"2.0","id":"lease","method":"lease","params":{"id":"5f…","resources":"cpu=1000 ",…}}
//   {"jsonrpc":"2.0","id":"lease","result":{"directory":"/home/a/…","block":"…"}}
//   {"jsonrpc":"2.0","id":"lease","error":{"code":-32000,"message":"…","data":{"kind":"busy"}}}
//
// Pure. Failure: invalid, with the field.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/ledger.h"

namespace berth::agent {

struct AskOffer {};
/// A part of the machine for an agent of its own. Asked again under the same id it is answered
/// again: whoever heard no answer may repeat it.
struct AskLease {
  std::string id;  // letters and digits
  machine::AllocRequest ask;
  Duration lease{};
  bool outlive = false;
  bool waits = false;  // keeps a place in the queue while the connection stands
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
  std::vector<std::string> devices;  // "NVIDIA H100 80GB HBM3", each
  std::vector<Holder> holders;
  std::vector<std::string> notes;  // what could not be read
};
struct Leased {
  std::string directory;  // of the place: agent/ is the agent's own, work/ goes with it
  machine::Block block;
};
using PoolAnswer = std::variant<MachineOffer, Leased, Error>;

// Without the line's end.
std::string encode(const PoolCall& call);
std::string encode(const PoolAnswer& answer);
Result<PoolCall> decode_pool_call(std::string_view line);
Result<PoolAnswer> decode_pool_answer(std::string_view line);

}  // namespace berth::agent
