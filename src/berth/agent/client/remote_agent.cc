#include "berth/agent/client/remote_agent.h"

#include <algorithm>

namespace berth::agent {
namespace {

constexpr Duration kDialFirst = std::chrono::milliseconds(500);
constexpr Duration kDialMost = std::chrono::seconds(10);
/// Between the end of an agent's lease and that of what it ran.
constexpr Duration kOnItsWay = std::chrono::seconds(2);

}  // namespace

RemoteAgent::RemoteAgent(os::Env& env, ConnectionOptions line, Duration timeout, Duration lease,
                         const RunnerSide& side, std::function<void()> on_contact)
    : AgentSession(env, side),
      options_(std::move(line)),
      timeout_(timeout),
      lease_(lease),
      on_contact_(std::move(on_contact)) {
  dial();
}

std::unique_ptr<RemoteAgent> RemoteAgent::through(os::Env& env, ConnectionOptions line,
                                                  Duration timeout, Duration lease,
                                                  const RunnerSide& side,
                                                  std::function<void()> on_contact) {
  return std::unique_ptr<RemoteAgent>(
      new RemoteAgent(env, std::move(line), timeout, lease, side, std::move(on_contact)));
}

void RemoteAgent::dial() {
  dial_at_.reset();
  connection_ = std::make_unique<Connection>(env_, options_, [this] { wake(); });
  opened_at_ = env_.boot_clock();
  arm();
}

void RemoteAgent::on_broken(Error because) {
  disconnect();
  if (connection_) because = connection_->because(std::move(because));
  cut_ = std::move(because);
  connection_.reset();
  // An agent that can be reached again in time goes on: several calls fall within its lease.
  const bool fixed = options_.reconnect > Duration(0);
  const Duration most = std::min(fixed ? options_.reconnect : kDialMost, timeout() / 8);
  const Duration pause = fixed ? most : std::min(most, kDialFirst * (1 << std::min(dials_++, 6)));
  const auto jitter = static_cast<std::int64_t>(env_.random() % 1024);  // 50 % to 150 %
  dial_at_ = env_.boot_clock() + pause * (512 + jitter) / 1024;
}

void RemoteAgent::on_welcome() {
  cut_.reset();
  dials_ = 0;
}

void RemoteAgent::on_refused(Error because, bool lasts) {
  if (!retryable(because.kind)) return lose(std::move(because));
  is_left_ = lasts;
  on_broken(std::move(because));
}

void RemoteAgent::step_connection() {
  const Mono now = env_.boot_clock();
  // Another word might renew the lease whose end is waited for.
  if ((is_left_ || now - received_at_ >= timeout()) && !stream_.is_open()) {
    connection_.reset();
    dial_at_.reset();
    return;
  }
  if (!connection_) {
    if (!dial_at_ || now >= *dial_at_) dial();
    return;
  }
  if (const auto& failed = connection_->lost()) {
    // Where there is no such agent, or none can be, another call finds none either.
    if (failed->kind == ErrorKind::impossible) return lose(*failed);
    return on_broken(*failed);
  }
  if (!stream_.is_open()) {
    if (!connection_->here()) return;
    stream_.open(connection_->take());
    opened_at_ = now;
    if (const auto status = write(); !status) return on_broken(status.error());
  }
  exchange();
  if (!lost() && connection_ && now >= silent_until())
    on_broken({ErrorKind::busy, "the connection stopped answering"});
}

std::optional<Mono> RemoteAgent::next_connection_step() const {
  if (!connection_) return dial_at_;
  if (connection_->lost() || (connection_->here() && !stream_.is_open())) return env_.boot_clock();
  return stream_.is_open() ? std::optional(silent_until()) : std::nullopt;
}

Duration RemoteAgent::timeout() const {
  return ready() && !agent().outlive ? agent().lease : timeout_;
}

Mono RemoteAgent::silent_until() const {
  return std::max(received_at_, opened_at_) + timeout() / kSilencesALease;
}

/// Whatever was said on a connection renews the agent's lease, if it is read there, though no
/// answer comes: what was long on its way does so until the lease has ended.
std::optional<Mono> RemoteAgent::lost_at() const {
  const Mono silent_until = received_at_ + timeout();
  if (!sent_at_ || *sent_at_ < received_at_) return silent_until;
  return std::max(silent_until, std::max(received_at_ + lease(), *sent_at_) + lease() + kOnItsWay);
}

void RemoteAgent::before_write() {
  if (!stream_.is_open()) return;
  const Mono now = env_.boot_clock();
  if (stream_.unsent() > 0) sent_at_ = now;
  const bool fresh = ready() && contact_noted_at_ &&
                     now - *contact_noted_at_ < lease() / Outbox::kKeepalivesALease;
  if (!on_contact_ || fresh) return;
  on_contact_();
  contact_noted_at_ = now;
}

void RemoteAgent::lose(Error because) {
  stream_.close();
  connection_.reset();
  AgentSession::lose(std::move(because));
}

}  // namespace berth::agent
