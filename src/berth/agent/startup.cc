#include "berth/agent/startup.h"

#include "berth/agent/protocol/codec.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::agent {

std::string ready_line(const os::ProcessIdentity& agent) {
  return fmt::format("{}{} {}\n", kReady, agent.pid, agent.started_at);
}

Result<os::ProcessIdentity> parse_ready(std::string_view said) {
  const auto fields = words(trim(said));
  if (fields.size() != 3 || fields[0] != trim(kReady))
    return fail(ErrorKind::invalid, "it said: {}", clip(trim(said)));
  BERTH_ASSIGN(const auto pid, parse_integer(fields[1]));
  BERTH_ASSIGN(const auto started_at, parse_integer(fields[2]));
  return os::ProcessIdentity{static_cast<pid_t>(pid), started_at};
}

template <class Codec>
void describe(Codec& codec, Of<Codec, AgentFile>& file) {
  codec.field("pid", file.process.pid, Bounds{0, std::numeric_limits<pid_t>::max()});
  codec.field("started_at", file.process.started_at);
  codec.field("boot", file.boot);
  codec.field("version", file.version);
  codec.field("block", file.block);
  codec.field("alloc", file.alloc, Bounds{});
  if (codec.has("host", !file.host.empty())) codec.field("host", file.host);
}

std::string to_json(const AgentFile& file) {
  return write_object(file);
}

Result<AgentFile> parse_agent_file(std::string_view text) {
  return read_object<AgentFile>(text);
}

}  // namespace berth::agent
