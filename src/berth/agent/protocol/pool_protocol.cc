// The messages between a runner and a machine's pool, each described once.
#include "berth/agent/protocol/pool_protocol.h"

#include <algorithm>

#include "berth/agent/protocol/codec.h"
#include "berth/base/text.h"

namespace berth::agent {

template <>
constexpr Envelope kEnvelope<AskOffer>{kCall, "offer"};
template <>
constexpr Envelope kEnvelope<AskLease>{kCall, "lease"};
template <>
constexpr Envelope kEnvelope<MachineOffer>{kAnswer, "offer"};
template <>
constexpr Envelope kEnvelope<Leased>{kAnswer, "lease"};

namespace {

/// The id becomes the name of a directory.
bool is_lease_id(std::string_view id) {
  constexpr std::size_t kIdMost = 64;
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !id.empty() && id.size() <= kIdMost && std::ranges::all_of(id, is_safe);
}

}  // namespace

template <class Codec>
void describe(Codec&, Of<Codec, AskOffer>&) {}

template <class Codec>
void describe(Codec& codec, Of<Codec, AskLease>& lease) {
  constexpr Bounds kLease_ns{1'000'000, 1'000'000LL * 1'000'000'000};
  auto& ask = lease.ask;
  codec.field("id", lease.id);
  codec.require("id", is_lease_id(lease.id));
  codec.field("resources", ask.resources);
  codec.field("label", ask.label);
  codec.field("priority", ask.priority, at_least(-kMost));
  if (codec.has("selection", ask.selection != machine::DeviceSelection()))
    codec.field("selection", ask.selection);
  codec.field("lease_ns", lease.lease, kLease_ns);
  codec.field("outlive", lease.outlive);
  codec.field("waits", lease.waits);
}

template <class Codec>
void describe(Codec& codec, Of<Codec, MachineOffer>& offer) {
  codec.field("host", offer.host);
  codec.field("version", offer.version);
  codec.field("system", offer.system);
  codec.field("free", offer.free);
  codec.field("total", offer.total);
  codec.field("devices", offer.devices);
  codec.field("notes", offer.notes);
  codec.rows("holders", offer.holders, [](auto& row, auto& holder) {
    row.cell(holder.label);
    row.cell(holder.resources);
    row.cell(holder.waiting);
  });
}

template <class Codec>
void describe(Codec& codec, Of<Codec, Leased>& leased) {
  codec.field("directory", leased.directory);
  codec.require("directory", leased.directory.starts_with('/'));
  codec.field("block", leased.block);
}

std::string encode(const PoolCall& call) {
  return std::visit([](const auto& one) { return write_message(one); }, call);
}

std::string encode(const PoolAnswer& answer) {
  if (const auto* error = std::get_if<Error>(&answer)) return write_error(*error);
  if (const auto* leased = std::get_if<Leased>(&answer)) return write_message(*leased);
  return write_message(std::get<MachineOffer>(answer));
}

Result<PoolCall> decode_pool_call(std::string_view line) {
  BERTH_ASSIGN(const auto received, Received::parse(line));
  if (received.is_answer() || received.error())
    return fail(ErrorKind::invalid, "no call: {}", clip(line));
  auto call = read_one_of<PoolCall, AskOffer, AskLease>(received);
  return call ? *std::move(call) : received.unknown();
}

Result<PoolAnswer> decode_pool_answer(std::string_view line) {
  BERTH_ASSIGN(const auto received, Received::parse(line));
  if (received.error()) return PoolAnswer(*received.error());
  if (!received.is_answer()) return fail(ErrorKind::invalid, "no answer: {}", clip(line));
  auto answer = read_one_of<PoolAnswer, MachineOffer, Leased>(received);
  return answer ? *std::move(answer) : received.unknown();
}

}  // namespace berth::agent
