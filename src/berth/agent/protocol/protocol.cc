// The messages between a runner and an agent, each described once.
#include "berth/agent/protocol/protocol.h"

#include <cmath>
#include <limits>

#include "berth/agent/protocol/codec.h"
#include "berth/base/text.h"

namespace berth::agent {

template <>
constexpr Envelope kEnvelope<Hello>{kCall, "hello"};
template <>
constexpr Envelope kEnvelope<exec::Launch>{kNotification, "launch"};
template <>
constexpr Envelope kEnvelope<exec::Cancel>{kNotification, "cancel"};
template <>
constexpr Envelope kEnvelope<exec::Abandon>{kNotification, "abandon"};
template <>
constexpr Envelope kEnvelope<Acknowledge>{kNotification, "acknowledge"};
template <>
constexpr Envelope kEnvelope<WantOutput>{kNotification, "want_output"};
template <>
constexpr Envelope kEnvelope<Keepalive>{kCall, "keepalive"};
template <>
constexpr Envelope kEnvelope<Finish>{kNotification, "finish"};
template <>
constexpr Envelope kEnvelope<Retain>{kNotification, "retain"};
template <>
constexpr Envelope kEnvelope<Welcome>{kAnswer, "hello"};
template <>
constexpr Envelope kEnvelope<Alive>{kAnswer, "keepalive"};
template <>
constexpr Envelope kEnvelope<exec::Started>{kNotification, "started"};
template <>
constexpr Envelope kEnvelope<exec::Output>{kNotification, "output"};
template <>
constexpr Envelope kEnvelope<exec::Metric>{kNotification, "metric"};
template <>
constexpr Envelope kEnvelope<exec::Notice>{kNotification, "notice"};
template <>
constexpr Envelope kEnvelope<exec::Ended>{kNotification, "ended"};

// Runner to agent.

template <class Codec>
void describe(Codec& codec, Of<Codec, Hello>& hello) {
  codec.field("version", hello.version);
  codec.field("epoch", hello.epoch);
  codec.field("environment", hello.environment);
  codec.field("beside", hello.beside);
}

template <class Codec>
void describe(Codec& codec, Of<Codec, exec::Launch>& launch) {
  constexpr Bounds kTime_ns{0, kLongest_ns};
  constexpr Bounds kSlots{0, 1 << 20};
  auto& selection = launch.request.selection;
  codec.field("task", launch.task, at_least(1));
  codec.field("token", launch.token, at_least(1));
  codec.field("resources", launch.request.resources);
  codec.field("holder", launch.request.holder);
  // Agents and runners of revision 0 know nothing else of a selection, which says the sizes again.
  if (codec.has("slot_sizes", !selection.slot_sizes.empty()) && !codec.has("selection", false))
    codec.field("slot_sizes", selection.slot_sizes, kSlots);
  if (codec.has("selection", selection != machine::DeviceSelection()))
    codec.field("selection", selection);
  codec.field("argv", launch.argv);
  codec.require("argv", !launch.argv.empty());
  codec.field("set", launch.environment);
  codec.field("directory", launch.directory);
  codec.field("timeout_ns", launch.timeout, kTime_ns);
  codec.field("grace_ns", launch.grace, kTime_ns);
  if (codec.has("enforce", launch.enforce)) codec.field("enforce", launch.enforce);
  if (codec.has("gpu_mem_over", launch.gpu_mem_over != exec::GpuMemOver::unwatched))
    codec.field("gpu_mem_over", launch.gpu_mem_over, exec::kGpuMemOverNames);
  auto& container = launch.container;
  if (codec.has("image", !container.image.empty())) codec.field("image", container.image);
  if (codec.has("network", container.isolated())) codec.field("network", container.network);
  if (codec.has("sandbox", container.sandbox)) codec.field("sandbox", container.sandbox);
  if (codec.has("shown", !container.shown.empty())) codec.field("shown", container.shown);
  if (codec.has("input", !launch.input.empty())) codec.field("input", launch.input);
  if (codec.has("behind", launch.behind.value > 0)) {
    codec.field("behind", launch.behind, at_least(1));
    codec.field("waits_most_ns", launch.waits_most, kTime_ns);
  }
}

template <class Codec>
void describe(Codec& codec, Of<Codec, exec::Cancel>& cancel) {
  codec.field("token", cancel.token, at_least(1));
}
template <class Codec>
void describe(Codec&, Of<Codec, exec::Abandon>&) {}
template <class Codec>
void describe(Codec& codec, Of<Codec, Acknowledge>& acknowledge) {
  codec.field("up_to", acknowledge.up_to);
}
template <class Codec>
void describe(Codec& codec, Of<Codec, WantOutput>& want) {
  codec.field("wanted", want.wanted);
}
template <class Codec>
void describe(Codec&, Of<Codec, Keepalive>&) {}
template <class Codec>
void describe(Codec&, Of<Codec, Finish>&) {}
template <class Codec>
void describe(Codec& codec, Of<Codec, Retain>& retain) {
  codec.field("time_ns", retain.time, Bounds{0, kLongest_ns});
}

// Agent to runner.

template <class Codec>
void describe(Codec& codec, Of<Codec, Welcome>& welcome) {
  codec.field("version", welcome.version);
  codec.field("id", welcome.id);
  codec.field("block", welcome.block);
  codec.field("alloc", welcome.alloc, Bounds{});
  codec.field("lease_ns", welcome.lease, Bounds{1, kLongest_ns});
  codec.field("outlive", welcome.outlive);
  codec.rows("attempts", welcome.attempts, [](auto& row, auto& attempt) {
    row.cell(attempt.task, at_least(1));
    row.cell(attempt.token, at_least(1));
  });
  codec.field("first", welcome.first, at_least(1));
  if constexpr (!Codec::kWrites) welcome.revision = 0;
  if (codec.has("revision", true)) codec.field("revision", welcome.revision);
}
template <class Codec>
void describe(Codec&, Of<Codec, Alive>&) {}

template <class Codec>
void describe(Codec& codec, Of<Codec, exec::Started>& started) {
  codec.field("block", started.block);
  codec.field("advisory", started.advisory);
}
template <class Codec>
void describe(Codec& codec, Of<Codec, exec::Output>& output) {
  codec.field("stream", output.stream, exec::kStreamNames);
  codec.field("bytes", output.bytes);
}
void set_missing(exec::Metric& metric) {
  metric.value = std::numeric_limits<double>::quiet_NaN();
}
void set_missing(const exec::Metric&) {}
template <class Codec>
void describe(Codec& codec, Of<Codec, exec::Metric>& metric) {
  codec.field("name", metric.name);
  bool missing = true;  // JSON has no number that is not finite
  if (codec.has("missing", !std::isfinite(metric.value))) {
    codec.field("missing", missing);
    set_missing(metric);
  } else {
    codec.field("value", metric.value);
  }
  if (codec.has("asked_to_end", metric.asked_to_end))
    codec.field("asked_to_end", metric.asked_to_end);
}
template <class Codec>
void describe(Codec& codec, Of<Codec, exec::Notice>& notice) {
  codec.field("text", notice.text);
}
template <class Codec>
void describe(Codec& codec, Of<Codec, exec::Ended>& ended) {
  constexpr std::int64_t kInt = std::numeric_limits<int>::max();
  codec.field("cause", ended.cause, exec::kCauseNames);
  codec.require("cause", exec::is_workers(ended.cause));
  if (codec.has("exit_code", ended.exit_code.has_value()))
    codec.field("exit_code", ended.exit_code, Bounds{-kInt, kInt});
  if (codec.has("signal", ended.signal != 0)) codec.field("signal", ended.signal, Bounds{0, kInt});
  if (codec.has("detail", !ended.detail.empty())) codec.field("detail", ended.detail);
  codec.field("cpu_ns", ended.cpu, Bounds{});
  codec.field("peak_mem", ended.peak_mem);
  if (codec.has("asked_to_end", ended.asked_to_end))
    codec.field("asked_to_end", ended.asked_to_end);
}

namespace {

/// What all messages of a worker begin with.
template <class Codec, class Number, class Message>
void describe_numbered(Codec& codec, Number& number, Message& message) {
  codec.field("number", number, at_least(1));
  codec.field("task", message.task, at_least(1));
  codec.field("token", message.token, at_least(1));
  describe(codec, message);
}

template <class... Messages>
Result<Answer> read_numbered(const Received& received, const std::variant<Messages...>&) {
  std::optional<Result<Answer>> read;
  const auto try_one = [&](auto message) {
    if (!received.is(kEnvelope<decltype(message)>)) return false;
    MessageReader reader(received.fields());
    Numbered numbered;
    describe_numbered(reader, numbered.number, message);
    if constexpr (requires { message.number; }) message.number = numbered.number;
    numbered.message = std::move(message);
    read = reader.finish(Answer(std::move(numbered)));
    return true;
  };
  if ((... || try_one(Messages()))) return *std::move(read);
  return received.unknown();
}

}  // namespace

std::int64_t revision_for(const exec::Launch& launch) {
  if (!launch.input.empty()) return 5;
  if (launch.container.sandbox || !launch.container.shown.empty()) return 4;
  if (!launch.container.image.empty()) return 3;
  const auto& selection = launch.request.selection;
  return selection == machine::DeviceSelection{.slot_sizes = selection.slot_sizes} ? 0 : 1;
}

std::string encode(const Call& call) {
  return std::visit([](const auto& one) { return write_message(one); }, call);
}

std::string encode(const Answer& answer) {
  if (const auto* numbered = std::get_if<Numbered>(&answer))
    return encode(numbered->number, numbered->message);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) return write_error(refusal->error);
  if (const auto* welcome = std::get_if<Welcome>(&answer)) return write_message(*welcome);
  if (const auto* acknowledge = std::get_if<Acknowledge>(&answer))
    return write_message(*acknowledge);
  return write_message(Alive());
}

std::string encode(std::int64_t number, const exec::FromWorker& message) {
  return std::visit(
      [&]<class Message>(const Message& one) {
        MessageWriter writer(kEnvelope<Message>);
        describe_numbered(writer, number, one);
        return writer.take();
      },
      message);
}

Result<Call> decode_call(std::string_view line) {
  BERTH_ASSIGN(const auto received, Received::parse(line));
  if (received.is_answer() || received.error())
    return fail(ErrorKind::invalid, "no call: {}", clip(line));
  auto call = read_one_of<Call, Hello, exec::Launch, exec::Cancel, exec::Abandon, Acknowledge,
                          WantOutput, Keepalive, Finish, Retain>(received);
  return call ? *std::move(call) : received.unknown();
}

Result<Answer> decode_answer(std::string_view line) {
  BERTH_ASSIGN(const auto received, Received::parse(line));
  if (received.error()) return Refusal{*received.error()};
  if (auto answer = read_one_of<Answer, Welcome, Alive, Acknowledge>(received))
    return *std::move(answer);
  return read_numbered(received, exec::FromWorker());
}

}  // namespace berth::agent
