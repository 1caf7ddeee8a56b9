#include "berth/agent/pool_protocol.h"

#include "berth/agent/fields.h"
#include "berth/agent/writer.h"

namespace berth::agent {
namespace {

std::string write(const AskOffer&) {
  return Writer::request("offer").finish();
}
std::string write(const AskLease& lease) {
  Writer writer = Writer::request("lease");
  writer.add("id", lease.id);
  writer.add("resources", machine::write_block({lease.ask.resources, {}, {}}));
  writer.add("label", lease.ask.label).add("priority", lease.ask.priority);
  if (lease.ask.selection != machine::DeviceSelection())
    writer.add("selection", machine::to_json(lease.ask.selection));
  writer.add("lease_ns", lease.lease.count()).add("outlive", lease.outlive);
  return writer.add("waits", lease.waits).finish();
}

std::string write(const MachineOffer& offer) {
  Writer writer = Writer::result("offer");
  writer.add("host", offer.host).add("version", offer.version).add("system", offer.system);
  writer.add("free", machine::write_block(offer.free));
  writer.add("total", machine::write_block(offer.total));
  writer.add("devices", offer.devices).add("notes", offer.notes);
  writer.add_list("holders", offer.holders, [](std::string& text, const Holder& holder) {
    text += '[';
    append_quoted(text, holder.label);
    text += ',';
    append_quoted(text, machine::write_block({holder.resources, {}, {}}));
    text += holder.waiting ? ",true]" : ",false]";
  });
  return writer.finish();
}
std::string write(const Leased& leased) {
  return Writer::result("lease")
      .add("directory", leased.directory)
      .add("block", machine::write_block(leased.block))
      .finish();
}
std::string write(const Error& error) {
  return write_error(error);
}

AskLease read_lease(Fields& fields) {
  AskLease lease;
  lease.id = fields.bytes("id");
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  constexpr std::size_t kIdMost = 64;
  if (lease.id.empty() || lease.id.size() > kIdMost || !std::ranges::all_of(lease.id, is_safe))
    fields.refuse("id");
  lease.ask.resources = fields.block("resources").resources;
  lease.ask.label = fields.bytes("label");
  lease.ask.priority = fields.integer("priority", -kMost);
  lease.ask.selection = fields.selection("selection");
  constexpr std::int64_t kLongestLease_ns = 1'000'000LL * 1'000'000'000;
  lease.lease = Duration(fields.integer("lease_ns", 1'000'000, kLongestLease_ns));
  lease.outlive = fields.boolean("outlive");
  lease.waits = fields.boolean("waits");
  return lease;
}

MachineOffer read_offer(Fields& fields) {
  MachineOffer offer;
  offer.host = fields.bytes("host");
  offer.version = fields.bytes("version");
  offer.system = fields.bytes("system");
  offer.free = fields.block("free");
  offer.total = fields.block("total");
  offer.devices = fields.texts("devices");
  offer.notes = fields.texts("notes");
  fields.each("holders", [&](const Json& item) {
    if (!item.is_array() || item.size() != 3 || !item[2].is_boolean())
      return fields.refuse("holders");
    auto block = machine::read_block(fields.bytes_of(item[1], "holders"));
    if (!block) return fields.refuse("holders");
    offer.holders.push_back(
        {fields.bytes_of(item[0], "holders"), std::move(block->resources), item[2].get<bool>()});
  });
  return offer;
}

}  // namespace

std::string encode(const PoolCall& call) {
  return std::visit([](const auto& one) { return write(one); }, call);
}

std::string encode(const PoolAnswer& answer) {
  return std::visit([](const auto& one) { return write(one); }, answer);
}

Result<PoolCall> decode_pool_call(std::string_view line) {
  BERTH_ASSIGN(const Json message, read_line(line));
  const auto method = text_of(message, "method");
  const Json* params = object_of(message, "params");
  if (!method || params == nullptr) return fail(ErrorKind::invalid, "no call: {}", clip(line));
  if (method == "offer") return AskOffer{};
  if (method != "lease") return fail(ErrorKind::invalid, "no such method: '{}'", clip(*method));
  Fields fields(*params);
  auto lease = read_lease(fields);
  return fields.finish<PoolCall>(std::move(lease));
}

Result<PoolAnswer> decode_pool_answer(std::string_view line) {
  BERTH_ASSIGN(const Json message, read_line(line));
  if (const Json* error = object_of(message, "error")) {
    BERTH_ASSIGN(auto told, read_error(*error));
    return PoolAnswer(std::move(told));
  }
  const auto of = text_of(message, "id");
  const Json* result = object_of(message, "result");
  if (!of || result == nullptr) return fail(ErrorKind::invalid, "no answer: {}", clip(line));
  Fields fields(*result);
  if (of == "offer") {
    auto offer = read_offer(fields);
    return fields.finish<PoolAnswer>(std::move(offer));
  }
  if (of != "lease") return fail(ErrorKind::invalid, "no such call: '{}'", clip(*of));
  Leased leased{fields.bytes("directory"), fields.block("block")};
  if (!leased.directory.starts_with('/')) fields.refuse("directory");
  return fields.finish<PoolAnswer>(std::move(leased));
}

}  // namespace berth::agent
