// The lines of the protocol, written.
#include "berth/agent/protocol.h"
#include "berth/agent/protocol_names.h"
#include "berth/agent/writer.h"
#include "berth/machine/ledger_file.h"

namespace berth::agent {
namespace {

std::string write(const Hello& hello) {
  return Writer::request("hello")
      .add("version", hello.version)
      .add("epoch", hello.epoch)
      .add("environment", hello.environment)
      .add("beside", hello.beside)
      .finish();
}
std::string write(const exec::Launch& launch) {
  Writer writer("launch");
  writer.add("task", launch.task.value).add("token", launch.token.value);
  writer.add("resources", machine::write_block({launch.request.resources, {}, {}}));
  writer.add("holder", launch.request.holder);
  const machine::DeviceSelection& selection = launch.request.selection;
  if (!selection.slot_sizes.empty())  // for agents of revision 0
    writer.add_list("slot_sizes", selection.slot_sizes,
                    [](std::string& text, int size) { text += fmt::format("{}", size); });
  if (selection != machine::DeviceSelection()) writer.add("selection", machine::to_json(selection));
  writer.add("argv", launch.argv).add("set", launch.environment);
  writer.add("directory", launch.directory);
  writer.add("timeout_ns", launch.timeout.count()).add("grace_ns", launch.grace.count());
  if (launch.enforce) writer.add("enforce", true);
  if (launch.gpu_mem_over != exec::GpuMemOver::unwatched)
    writer.add("gpu_mem_over", exec::kGpuMemOver.at(static_cast<std::size_t>(launch.gpu_mem_over)));
  if (launch.behind.value > 0)
    writer.add("behind", launch.behind.value).add("waits_most_ns", launch.waits_most.count());
  return writer.finish();
}
std::string write(const exec::Cancel& cancel) {
  return Writer("cancel").add("token", cancel.token.value).finish();
}
std::string write(const exec::Abandon&) {
  return Writer("abandon").finish();
}
std::string write(const Acknowledge& acknowledge) {
  return Writer("acknowledge").add("up_to", acknowledge.up_to).finish();
}
std::string write(const WantOutput& want) {
  return Writer("want_output").add("wanted", want.wanted).finish();
}
std::string write(const Keepalive&) {
  return Writer::request("keepalive").finish();
}
std::string write(const Finish&) {
  return Writer("finish").finish();
}
std::string write(const Retain& retain) {
  return Writer("retain").add("time_ns", retain.time.count()).finish();
}

std::string write(const Welcome& welcome) {
  return Writer::result("hello")
      .add("version", welcome.version)
      .add("id", welcome.id)
      .add("block", machine::write_block(welcome.block))
      .add("alloc", welcome.alloc.value)
      .add("lease_ns", welcome.lease.count())
      .add("outlive", welcome.outlive)
      .add_list("attempts", welcome.attempts,
                [](std::string& text, const Attempt& attempt) {
                  text += fmt::format("[{},{}]", attempt.task.value, attempt.token.value);
                })
      .add("first", welcome.first)
      .add("revision", welcome.revision)
      .finish();
}
std::string write(const Alive&) {
  return Writer::result("keepalive").finish();
}
std::string write(const Refusal& refusal) {
  return write_error(refusal.error);
}
std::string write(const Numbered& numbered) {
  return encode(numbered.number, numbered.message);
}

template <class Message>
Writer numbered(std::string_view method, std::int64_t number, const Message& message) {
  Writer writer(method);
  writer.add("number", number);
  writer.add("task", message.task.value).add("token", message.token.value);
  return writer;
}
std::string write(std::int64_t number, const exec::Started& started) {
  return numbered("started", number, started)
      .add("block", machine::write_block(started.block))
      .add("advisory", started.advisory)
      .finish();
}
std::string write(std::int64_t number, const exec::Output& output) {
  return numbered("output", number, output)
      .add("stream", kStreams[static_cast<std::size_t>(output.stream)])
      .add("bytes", output.bytes)
      .finish();
}
std::string write(std::int64_t number, const exec::Metric& metric) {
  return numbered("metric", number, metric)
      .add("name", metric.name)
      .add_number("value", metric.value)
      .finish();
}
std::string write(std::int64_t number, const exec::Notice& notice) {
  return numbered("notice", number, notice).add("text", notice.text).finish();
}
std::string write(std::int64_t number, const exec::Ended& ended) {
  Writer writer = numbered("ended", number, ended);
  writer.add("cause", exec::kCauseNames.name(ended.cause));
  if (ended.exit_code) writer.add("exit_code", std::int64_t{*ended.exit_code});
  if (ended.signal != 0) writer.add("signal", std::int64_t{ended.signal});
  if (!ended.detail.empty()) writer.add("detail", ended.detail);
  return writer.add("cpu_ns", ended.cpu.count()).add("peak_mem", ended.peak_mem).finish();
}

}  // namespace

std::int64_t revision_for(const machine::DeviceSelection& selection) {
  return selection == machine::DeviceSelection{.slot_sizes = selection.slot_sizes} ? 0 : 1;
}

std::string encode(const Call& call) {
  return std::visit([](const auto& one) { return write(one); }, call);
}

std::string encode(const Answer& answer) {
  return std::visit([](const auto& one) { return write(one); }, answer);
}

std::string encode(std::int64_t number, const exec::FromWorker& message) {
  return std::visit([&](const auto& one) { return write(number, one); }, message);
}

}  // namespace berth::agent
