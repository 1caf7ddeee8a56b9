// The lines of the protocol, read: from whoever sends them.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "berth/agent/protocol.h"
#include "berth/agent/protocol_names.h"
#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/machine/ledger_file.h"

namespace berth::agent {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// The parameters of one message. The first field that is not as wanted is remembered, and what is
/// read after it means nothing.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  std::int64_t integer(const char* name, std::int64_t least = 0, std::int64_t most = kMost) {
    const Json* value = find(name);
    return value != nullptr ? integer_of(*value, name, least, most) : least;
  }
  bool boolean(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_boolean()) refuse(name);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  double number(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_number()) refuse(name);
    return value != nullptr && value->is_number() ? value->get<double>() : 0;
  }
  std::string bytes(const char* name) {
    const Json* value = find(name);
    return value != nullptr ? bytes_of(*value, name) : std::string();
  }
  template <std::size_t N>
  std::size_t choice(const char* name, const std::array<std::string_view, N>& choices) {
    const std::string text = bytes(name);
    const auto found = std::ranges::find(choices, text);
    if (found == choices.end() || text.empty()) refuse(name);
    return found == choices.end() ? 0 : static_cast<std::size_t>(found - choices.begin());
  }
  machine::Block block(const char* name) {
    auto block = machine::read_block(bytes(name));
    if (!block) refuse(name);
    return block ? *std::move(block) : machine::Block();
  }
  Attempt attempt() { return {{integer("task", 1)}, {integer("token", 1)}}; }
  /// Of an optional field only when it is there.
  bool has(const char* name) const { return object_.contains(name); }

  template <class Read>
  void each(const char* name, Read read) {
    const Json* list = find(name);
    if (list == nullptr) return;
    if (!list->is_array()) return refuse(name);
    for (const auto& item : *list) read(item);
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> texts;
    each(name, [&](const Json& item) { texts.push_back(bytes_of(item, name)); });
    return texts;
  }
  exec::Environment environment(const char* name) {
    exec::Environment environment;
    each(name, [&](const Json& item) {
      const std::string text = bytes_of(item, name);
      const auto equals = text.find('=');
      if (equals == std::string::npos) return refuse(name);
      environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    });
    return environment;
  }
  std::int64_t integer_of(const Json& value, const char* name, std::int64_t least = 0,
                          std::int64_t most = kMost) {
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() &&
                        value.get<std::uint64_t>() > static_cast<std::uint64_t>(kMost));
    const std::int64_t number = fits ? value.get<std::int64_t>() : least;
    if (!fits || number < least || number > most) refuse(name);
    return number;
  }
  void refuse(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }

  template <class Message>
  Result<Message> finish(Message message) const {
    if (!wrong_.empty()) return fail(ErrorKind::invalid, "field '{}' is not as wanted", wrong_);
    return message;
  }

 private:
  const Json* find(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    refuse(name);
    return nullptr;
  }
  std::string bytes_of(const Json& value, const char* name) {
    std::string bytes;
    if (!value.is_string()) {
      refuse(name);
      return bytes;
    }
    const auto& text = value.get_ref<const std::string&>();
    bytes.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {  // valid UTF-8, says the parser
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte < 0x80) {
        bytes += text[i];
      } else if (byte == 0xC2 || byte == 0xC3) {
        bytes += static_cast<char>((byte << 6) | (text[++i] & 0x3F));
      } else {
        refuse(name);
        return bytes;
      }
    }
    return bytes;
  }

  const Json& object_;
  std::string wrong_;
};

constexpr std::int64_t kLongest_ns = kMost / 4;  // added to a clock it still fits

Result<Call> read_start(Fields fields) {
  Start start;
  exec::Launch& launch = start.launch;
  const auto [task, token] = fields.attempt();
  launch.task = task;
  launch.token = token;
  launch.request.resources = fields.block("resources").resources;
  launch.request.holder = fields.bytes("holder");
  if (fields.has("slot_sizes"))
    fields.each("slot_sizes", [&](const Json& size) {
      constexpr std::int64_t kSlotsMost = 1 << 20;
      launch.request.slot_sizes.push_back(
          static_cast<int>(fields.integer_of(size, "slot_sizes", 0, kSlotsMost)));
    });
  launch.argv = fields.texts("argv");
  if (launch.argv.empty()) fields.refuse("argv");
  launch.environment = fields.environment("set");
  if (fields.has("unset")) start.unset = fields.texts("unset");
  launch.directory = fields.bytes("directory");
  launch.timeout = Duration(fields.integer("timeout_ns", 0, kLongest_ns));
  launch.grace = Duration(fields.integer("grace_ns", 0, kLongest_ns));
  return fields.finish<Call>(std::move(start));
}

Result<Call> read_call(std::string_view method, Fields fields) {
  if (method == "launch") return read_start(std::move(fields));
  if (method == "acknowledge") return fields.finish<Call>(Acknowledge{fields.integer("up_to")});
  if (method == "cancel") return fields.finish<Call>(exec::Cancel{{fields.integer("token", 1)}});
  if (method == "abandon") return exec::Abandon{};
  if (method == "want_output") return fields.finish<Call>(WantOutput{fields.boolean("wanted")});
  if (method == "keepalive") return Keepalive{};
  if (method == "finish") return Finish{};
  if (method == "retain")
    return fields.finish<Call>(Retain{Duration(fields.integer("time_ns", 0, kLongest_ns))});
  if (method == "hello") {
    Hello hello{fields.integer("version"), fields.integer("epoch"), {}};
    hello.environment = fields.environment("environment");
    return fields.finish<Call>(std::move(hello));
  }
  return fail(ErrorKind::invalid, "no such method: '{}'", clip(method));
}

Result<Answer> read_message(std::string_view method, Fields fields) {
  if (method == "acknowledge") return fields.finish<Answer>(Acknowledge{fields.integer("up_to")});
  const auto finish = [&](auto message) {
    const auto [task, token] = fields.attempt();
    message.task = task;
    message.token = token;
    Numbered numbered{fields.integer("number", 1), std::move(message)};
    return fields.finish<Answer>(std::move(numbered));
  };
  if (method == "ended") {
    exec::Ended ended;
    ended.cause = static_cast<exec::Cause>(fields.choice("cause", kCauses));
    constexpr int kInt = std::numeric_limits<int>::max();
    if (fields.has("exit_code"))
      ended.exit_code = static_cast<int>(fields.integer("exit_code", -kInt, kInt));
    if (fields.has("signal")) ended.signal = static_cast<int>(fields.integer("signal", 0, kInt));
    if (fields.has("detail")) ended.detail = fields.bytes("detail");
    ended.cpu = Duration(fields.integer("cpu_ns"));
    ended.peak_mem = fields.integer("peak_mem");
    return finish(std::move(ended));
  }
  if (method == "output") {
    exec::Output output;
    output.stream = static_cast<exec::Stream>(fields.choice("stream", kStreams));
    output.bytes = fields.bytes("bytes");
    return finish(std::move(output));
  }
  if (method == "metric") {
    exec::Metric metric;
    metric.name = fields.bytes("name");
    metric.value = fields.number("value");
    return finish(std::move(metric));
  }
  if (method == "started") {
    exec::Started started;
    started.block = fields.block("block");
    started.advisory = fields.bytes("advisory");
    return finish(std::move(started));
  }
  return fail(ErrorKind::invalid, "no such method: '{}'", clip(method));
}

Result<Answer> read_result(std::string_view of, Fields fields) {
  if (of == "keepalive") return Alive{};
  if (of != "hello") return fail(ErrorKind::invalid, "no such call: '{}'", clip(of));
  Welcome welcome;
  welcome.version = fields.integer("version");
  welcome.id = fields.bytes("id");
  welcome.block = fields.block("block");
  welcome.alloc = {fields.integer("alloc")};
  welcome.lease = Duration(fields.integer("lease_ns", 1, kMost / 4));
  welcome.outlive = fields.boolean("outlive");
  fields.each("attempts", [&](const Json& pair) {
    if (!pair.is_array() || pair.size() != 2) return fields.refuse("attempts");
    welcome.attempts.push_back(
        {{fields.integer_of(pair[0], "attempts", 1)}, {fields.integer_of(pair[1], "attempts", 1)}});
  });
  welcome.first = fields.integer("first", 1);
  return fields.finish<Answer>(std::move(welcome));
}

/// The text under `name`; nullopt where there is none.
std::optional<std::string_view> text_of(const Json& message, const char* name) {
  const auto found = message.find(name);
  if (found == message.end() || !found->is_string()) return std::nullopt;
  return found->get_ref<const std::string&>();
}

/// The object under `name`, or nullptr.
const Json* object_of(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_object() ? &*found : nullptr;
}

Result<Answer> read_error(const Json& error) {
  constexpr auto kLast = static_cast<std::uint8_t>(ErrorKind::interrupted);
  Fields fields(error);
  Refusal refusal{{ErrorKind::io, fields.bytes("message")}};
  const Json* data = object_of(error, "data");
  const auto kind = data != nullptr ? text_of(*data, "kind") : std::nullopt;
  for (std::uint8_t i = 0; i <= kLast; ++i)
    if (kind == name(static_cast<ErrorKind>(i))) refusal.error.kind = static_cast<ErrorKind>(i);
  return fields.finish<Answer>(std::move(refusal));
}

Result<Json> read_line(std::string_view line) {
  BERTH_ASSIGN(Json message, parse_json(line));
  if (!message.is_object() || text_of(message, "jsonrpc") != "2.0")
    return fail(ErrorKind::invalid, "no JSON-RPC 2.0: {}", clip(line));
  return message;
}

}  // namespace

Result<Call> decode_call(std::string_view line) {
  BERTH_ASSIGN(const Json message, read_line(line));
  const auto method = text_of(message, "method");
  const Json* params = object_of(message, "params");
  if (!method || params == nullptr) return fail(ErrorKind::invalid, "no call: {}", clip(line));
  return read_call(*method, Fields(*params));
}

Result<Answer> decode_answer(std::string_view line) {
  BERTH_ASSIGN(const Json message, read_line(line));
  const Json* params = object_of(message, "params");
  if (const auto method = text_of(message, "method"); method && params != nullptr)
    return read_message(*method, Fields(*params));
  const Json* result = object_of(message, "result");
  if (const auto id = text_of(message, "id"); id && result != nullptr)
    return read_result(*id, Fields(*result));
  if (const Json* error = object_of(message, "error")) return read_error(*error);
  return fail(ErrorKind::invalid, "neither message nor answer: {}", clip(line));
}

}  // namespace berth::agent
