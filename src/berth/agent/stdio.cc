#include "berth/agent/stdio.h"

#include <array>

#include "berth/agent/protocol/connection.h"

namespace berth::agent {

/// What the agent says waits for standard output to take it; what the runner says waits here.
Status serve_stdio(os::Env& env, const std::string& directory) {
  const os::Fd in(env, 0);
  const os::Fd out(env, 1);
  const auto connected = env.connect_local(directory + "/socket");
  if (!connected) {
    const bool none = connected.error().kind == ErrorKind::not_found;
    const auto& said = connected.error().message;
    if (none)
      BERTH_TRY(env.write_all(out, fmt::format("\n{}continue on this host: {}\n", kCannot, said)));
    return std::unexpected(connected.error());
  }
  const os::Fd& socket = *connected;
  BERTH_TRY(env.write_all(out, fmt::format("\n{}\n", kHere)));
  os::ReadBuffer buffer;
  std::string waiting;
  bool is_heard = true;  // else what the runner said last still goes to the agent
  while (env.stop_signals() == 0) {
    std::array<os::Watch, 3> watches{
        os::Watch{.fd = waiting.empty() ? in.number() : -1}, os::Watch{.fd = socket.number()},
        os::Watch{.fd = waiting.empty() ? -1 : socket.number(), .readable = false}};
    BERTH_TRY(env.wait(watches, std::nullopt));
    if (watches[0].ready) {
      BERTH_ASSIGN(const auto got, env.read_some(in, buffer));
      if (got && *got == 0) return {};
      if (got) waiting.assign(buffer.data(), *got);
    }
    if (watches[1].ready) {
      BERTH_ASSIGN(const auto got, env.read_some(socket, buffer));
      if (got && *got == 0) return {};
      if (got && is_heard)
        is_heard = env.write_all(out, std::string_view(buffer.data(), *got)).has_value();
    }
    if (!waiting.empty()) {
      BERTH_ASSIGN(const auto put, env.write_some(socket, waiting));
      waiting.erase(0, put.value_or(0));
    }
  }
  return {};
}

}  // namespace berth::agent
