#include "berth/agent/client/attached_agent.h"

#include <algorithm>
#include <csignal>

#include "berth/agent/layout.h"
#include "berth/agent/startup.h"
#include "berth/base/units.h"

namespace berth::agent {
namespace {

constexpr Duration kAnswersWithin = std::chrono::seconds(20);
constexpr Duration kConnectAgain = std::chrono::milliseconds(5);
constexpr Duration kRefusedAgain = std::chrono::milliseconds(500);

}  // namespace

AttachedAgent::AttachedAgent(os::Env& env, std::string directory, const RunnerSide& side)
    : AgentSession(env, side),
      directory_(std::move(directory)),
      give_up_at_(received_at_ + kAnswersWithin) {}

std::unique_ptr<AttachedAgent> AttachedAgent::attach(os::Env& env, const std::string& directory,
                                                     const RunnerSide& side) {
  auto client = std::unique_ptr<AttachedAgent>(new AttachedAgent(env, directory, side));
  auto status = client->connect();
  if (!status && status.error().kind == ErrorKind::not_found && env.status(directory + "/lock")) {
    const auto lock = env.lock(directory + "/lock", false);
    if (!lock && lock.error().kind == ErrorKind::busy)
      status = fail(ErrorKind::busy, "{}: an agent that does not listen", directory);
  }
  if (!status) client->lose(status.error());
  client->arm();
  return client;
}

Status AttachedAgent::connect() {
  connect_at_.reset();
  auto fd = env_.connect_local(directory_ + "/socket");
  if (fd)
    stream_.open(*std::move(fd));
  else if (fd.error().kind == ErrorKind::full)
    connect_at_ = env_.boot_clock() + kConnectAgain;
  else
    return std::unexpected(fd.error());
  return {};
}

void AttachedAgent::on_refused(Error because, bool lasts) {
  if (!retryable(because.kind) && !is_ending_) return lose(std::move(because));
  if (lasts && !is_ending_) {
    const auto text = env_.read_file(agent_file(directory_), kAgentFileMost);
    const auto file = text ? parse_agent_file(*text) : std::unexpected(text.error());
    is_ending_ = file && env_.signal_process(file->process, SIGTERM);
  }
  disconnect();
  connect_at_ = env_.boot_clock() + kRefusedAgain;
}

void AttachedAgent::step_connection() {
  const Mono now = env_.boot_clock();
  if (connect_at_ && now >= *connect_at_)
    if (const auto status = connect(); !status) lose(status.error());
  if (stream_.is_open()) exchange();
  if (!lost() && !ready() && now >= give_up_at_)
    lose({ErrorKind::io,
          fmt::format("no agent answered within {}", format_duration(kAnswersWithin))});
}

std::optional<Mono> AttachedAgent::next_connection_step() const {
  if (!connect_at_) return ready() ? std::nullopt : std::optional(give_up_at_);
  return ready() ? *connect_at_ : std::min(*connect_at_, give_up_at_);
}

}  // namespace berth::agent
