// The lines of the protocol, read: from whoever sends them.
#include "berth/agent/fields.h"
#include "berth/agent/protocol.h"
#include "berth/agent/protocol_names.h"

namespace berth::agent {
namespace {

constexpr std::int64_t kLongest_ns = kMost / 4;  // added to a clock it still fits

/// Runners that know no selection say the sizes of slots alone.
machine::DeviceSelection read_selection(Fields& fields) {
  machine::DeviceSelection selection = fields.selection("selection");
  if (fields.has("selection") || !fields.has("slot_sizes")) return selection;
  constexpr std::int64_t kSlotsMost = 1 << 20;
  fields.each("slot_sizes", [&](const Json& size) {
    selection.slot_sizes.push_back(
        static_cast<int>(fields.integer_of(size, "slot_sizes", 0, kSlotsMost)));
  });
  return selection;
}

Result<Call> read_launch(Fields fields) {
  exec::Launch launch;
  const auto [task, token] = fields.attempt();
  launch.task = task;
  launch.token = token;
  launch.request.resources = fields.block("resources").resources;
  launch.request.holder = fields.bytes("holder");
  launch.request.selection = read_selection(fields);
  launch.argv = fields.texts("argv");
  if (launch.argv.empty()) fields.refuse("argv");
  launch.environment = fields.environment("set");
  launch.directory = fields.bytes("directory");
  launch.timeout = Duration(fields.integer("timeout_ns", 0, kLongest_ns));
  launch.grace = Duration(fields.integer("grace_ns", 0, kLongest_ns));
  launch.enforce = fields.has("enforce") && fields.boolean("enforce");
  if (fields.has("gpu_mem_over"))
    launch.gpu_mem_over =
        static_cast<exec::GpuMemOver>(fields.choice("gpu_mem_over", exec::kGpuMemOver));
  if (fields.has("behind")) {
    launch.behind = {fields.integer("behind", 1)};
    launch.waits_most = Duration(fields.integer("waits_most_ns", 0, kLongest_ns));
  }
  return fields.finish<Call>(std::move(launch));
}

Result<Call> read_call(std::string_view method, Fields fields) {
  if (method == "launch") return read_launch(std::move(fields));
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
    hello.beside = fields.boolean("beside");
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
    ended.cause = fields.choice("cause", exec::kCauseNames).value_or(ended.cause);
    if (!exec::is_workers(ended.cause)) fields.refuse("cause");
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
  if (method == "notice") {
    exec::Notice notice;
    notice.text = fields.bytes("text");
    return finish(std::move(notice));
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
  welcome.revision = fields.has("revision") ? fields.integer("revision") : 0;
  return fields.finish<Answer>(std::move(welcome));
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
  if (const Json* error = object_of(message, "error")) {
    BERTH_ASSIGN(auto told, read_error(*error));
    return Refusal{std::move(told)};
  }
  return fail(ErrorKind::invalid, "neither message nor answer: {}", clip(line));
}

}  // namespace berth::agent
