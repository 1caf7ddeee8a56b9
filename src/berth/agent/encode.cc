// The lines of the protocol, written.
#include <fmt/format.h>

#include "berth/agent/protocol.h"
#include "berth/agent/protocol_names.h"
#include "berth/machine/ledger_file.h"

namespace berth::agent {
namespace {

void append_quoted(std::string& text, std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text += '"';
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '"' || byte == '\\') {
      text += '\\';
      text += c;
    } else if (byte == '\n') {
      text += "\\n";
    } else if (byte < 0x20) {
      text += "\\u00";
      text += kHex[byte >> 4];
      text += kHex[byte & 0xF];
    } else if (byte < 0x80) {
      text += c;
    } else {  // U+0080 to U+00FF in UTF-8
      text += static_cast<char>(0xC0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  text += '"';
}

/// One message, field by field.
class Writer {
 public:
  explicit Writer(std::string_view method) {
    text_ = fmt::format(R"({{"jsonrpc":"2.0","method":"{}","params":{{)", method);
  }
  /// A call that is answered, by its own name.
  static Writer request(std::string_view method) {
    return Writer(fmt::format(R"({{"jsonrpc":"2.0","id":"{0}","method":"{0}","params":{{)", method),
                  0);
  }
  static Writer result(std::string_view of) {
    return Writer(fmt::format(R"({{"jsonrpc":"2.0","id":"{}","result":{{)", of), 0);
  }

  Writer& add(std::string_view name, std::int64_t value) {
    key(name);
    const fmt::format_int digits(value);
    text_.append(digits.data(), digits.size());
    return *this;
  }
  Writer& add(std::string_view name, bool value) {
    key(name);
    text_ += value ? "true" : "false";
    return *this;
  }
  Writer& add_number(std::string_view name, double value) {
    key(name);
    fmt::format_to(std::back_inserter(text_), "{}", value);
    return *this;
  }
  Writer& add(std::string_view name, std::string_view bytes) {
    key(name);
    append_quoted(text_, bytes);
    return *this;
  }
  template <class List, class Append>
  Writer& add_list(std::string_view name, const List& list, Append append) {
    key(name);
    text_ += '[';
    for (const auto& item : list) {
      if (text_.back() != '[') text_ += ',';
      append(text_, item);
    }
    text_ += ']';
    return *this;
  }
  Writer& add(std::string_view name, const std::vector<std::string>& texts) {
    return add_list(name, texts, append_quoted);
  }
  Writer& add(std::string_view name, const exec::Environment& environment) {
    return add_list(name, environment, [](std::string& text, const auto& variable) {
      append_quoted(text, variable.first + "=" + variable.second);
    });
  }
  std::string finish() { return std::move(text_) + "}}"; }

 private:
  Writer(std::string begin, int) : text_(std::move(begin)) {}
  void key(std::string_view name) {
    if (text_.back() != '{') text_ += ',';
    text_ += '"';
    text_ += name;
    text_ += "\":";
  }
  std::string text_;
};

std::string write(const Hello& hello) {
  return Writer::request("hello")
      .add("version", hello.version)
      .add("epoch", hello.epoch)
      .add("environment", hello.environment)
      .finish();
}
std::string write(const Start& start) {
  const exec::Launch& launch = start.launch;
  Writer writer("launch");
  writer.add("task", launch.task.value).add("token", launch.token.value);
  writer.add("resources", machine::write_block({launch.request.resources, {}, {}}));
  writer.add("holder", launch.request.holder);
  if (!launch.request.slot_sizes.empty())
    writer.add_list("slot_sizes", launch.request.slot_sizes,
                    [](std::string& text, int size) { text += fmt::format("{}", size); });
  writer.add("argv", launch.argv).add("set", launch.environment);
  if (!start.unset.empty()) writer.add("unset", start.unset);
  writer.add("directory", launch.directory);
  writer.add("timeout_ns", launch.timeout.count()).add("grace_ns", launch.grace.count());
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
      .finish();
}
std::string write(const Alive&) {
  return Writer::result("keepalive").finish();
}
std::string write(const Refusal& refusal) {
  constexpr int kOurs = -32000;  // the first of those that JSON-RPC leaves to us
  std::string message;
  append_quoted(message, refusal.error.message);
  return fmt::format(
      R"({{"jsonrpc":"2.0","id":null,"error":{{"code":{},"message":{},"data":{{"kind":"{}"}}}}}})",
      kOurs, message, name(refusal.error.kind));
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
std::string write(std::int64_t number, const exec::Ended& ended) {
  Writer writer = numbered("ended", number, ended);
  writer.add("cause", kCauses[static_cast<std::size_t>(ended.cause)]);
  if (ended.exit_code) writer.add("exit_code", std::int64_t{*ended.exit_code});
  if (ended.signal != 0) writer.add("signal", std::int64_t{ended.signal});
  if (!ended.detail.empty()) writer.add("detail", ended.detail);
  return writer.add("cpu_ns", ended.cpu.count()).add("peak_mem", ended.peak_mem).finish();
}

}  // namespace

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
