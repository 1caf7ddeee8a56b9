#include "berth/agent/client/agent_session.h"

#include <algorithm>

#include "berth/base/units.h"

namespace berth::agent {
namespace {

/// Notices that a later one replaces wait while so much is unsent: the agent is frozen.
constexpr std::size_t kUnsentMost = 16 << 10;
constexpr Duration kRefusalLasts = std::chrono::minutes(1);

std::string hello_of(const RunnerSide& side) {
  Hello hello;
  hello.epoch = side.epoch;
  hello.environment = side.environment;
  hello.beside = side.beside;
  return encode(Call(std::move(hello)));
}

}  // namespace

AgentSession::AgentSession(os::Env& env, const RunnerSide& side)
    : env_(env),
      stream_(env,
              [this](Status status) {
                stream_status_ = std::move(status);
                wake();
              }),
      received_at_(env.boot_clock()),
      hello_(hello_of(side)) {
  stream_.send_line(hello_);
}

void AgentSession::disconnect() {
  outbox_.close();
  stream_.reset();
  stream_status_ = {};
  stream_.send_line(hello_);
}

void AgentSession::send(const exec::ToWorker& message) {
  if (lost_) return;
  if (const auto* launch = std::get_if<exec::Launch>(&message)) {
    inbox_.expect(launch->token);
    if (auto ended = outbox_.launch(*launch)) inbox_.refuse(*std::move(ended));
  } else if (const auto* cancel = std::get_if<exec::Cancel>(&message)) {
    outbox_.cancel(cancel->token, inbox_.expects(cancel->token));
  } else {
    outbox_.abandon();
  }
  if (outbox_.is_open()) before_write();
  arm();
  if (inbox_.has_messages() && !wake_) wake();
}

void AgentSession::send_last(const Call& call) {
  if (lost_) return;
  send_due();
  outbox_.send_last(call);
  (void)write();
  arm();
}

void AgentSession::set_reading(bool reads_output) {
  if (lost_) return;
  outbox_.want_output(reads_output);
  send_due();
  arm();
}

void AgentSession::take_messages(std::vector<exec::FromWorker>& messages) {
  inbox_.take_messages(messages);
  arm();
}

/// What the loop waits for, as it is now.
void AgentSession::arm() {
  due_.no_later_than(next_step());
  if (wake_ && (inbox_.has_messages() || lost_)) wake_();
}

std::optional<Mono> AgentSession::next_step() const {
  if (lost_) return std::nullopt;
  if (stream_.is_open() && stream_.ended()) return env_.now();
  std::optional<Mono> first = next_connection_step();
  const auto consider = [&](Mono at) { first = first ? std::min(*first, at) : at; };
  // What cannot be sent now is not waited for.
  if (outbox_.is_open() && stream_.unsent() <= kUnsentMost) consider(outbox_.keepalive_at());
  if (const auto at = lost_at()) consider(*at);
  if (!first) return std::nullopt;
  return env_.now() + std::max(Duration(0), *first - env_.boot_clock());
}

void AgentSession::step() {
  const Mono now = env_.boot_clock();
  if (!lost_) step_connection();
  if (const auto at = lost_at(); !lost_ && at && now >= *at) {
    const auto why = cut();
    lose({ErrorKind::stale,
          fmt::format("the agent was silent for {}{}{}{}", format_duration(now - received_at_),
                      welcome_ && !welcome_->outlive ? fmt::format(", and its lease of {} is over",
                                                                   format_duration(welcome_->lease))
                                                     : "",
                      why ? ": " : "", why ? why->message : "")});
  }
  if (!lost_) send_due();
  arm();
}

std::optional<Mono> AgentSession::lost_at() const {
  if (!welcome_ || welcome_->outlive) return std::nullopt;
  return received_at_ + welcome_->lease;
}

Status AgentSession::write() {
  before_write();
  return stream_.write();
}

void AgentSession::send_due() {
  if (!outbox_.is_open() || stream_.unsent() > kUnsentMost) return;
  outbox_.send_notices(inbox_.take_acknowledgement(), env_.boot_clock());
  if (const auto status = write(); !status) on_broken(status.error());
}

void AgentSession::exchange() {
  auto status = std::exchange(stream_status_, Status{});
  if (status) status = write();
  // What came before it broke is heard all the same.
  for (auto line = stream_.next(); line && !lost_; line = stream_.next()) {
    received_at_ = env_.boot_clock();
    auto answer = decode_answer(*line);
    const auto* refusal = answer ? std::get_if<Refusal>(&*answer) : nullptr;
    if (refusal != nullptr) return refuse(within("the agent", refusal->error));
    const auto received =
        answer ? receive(*std::move(answer)) : Status(std::unexpected(answer.error()));
    if (!received) return lose(received.error());
  }
  if (lost_ || (status && !stream_.ended())) return;
  on_broken(status ? Error{ErrorKind::io, "the agent has ended"} : status.error());
}

void AgentSession::refuse(Error because) {
  refused_since_ = refused_since_.value_or(received_at_);
  on_refused(std::move(because), received_at_ - *refused_since_ >= kRefusalLasts);
}

Status AgentSession::receive(Answer answer) {
  if (auto* welcome = std::get_if<Welcome>(&answer)) return receive_welcome(std::move(*welcome));
  refused_since_.reset();
  if (!welcome_) return fail(ErrorKind::invalid, "the agent's first message must be its welcome");
  auto* numbered = std::get_if<Numbered>(&answer);
  if (numbered == nullptr) return {};
  if (const auto* ended = std::get_if<exec::Ended>(&numbered->message)) outbox_.ended(ended->token);
  return inbox_.receive(std::move(*numbered));
}

Status AgentSession::receive_welcome(Welcome welcome) {
  if (outbox_.is_open() || welcome.version != kProtocolVersion)
    return fail(ErrorKind::invalid, "the agent's welcome is of version {}, or came twice",
                welcome.version);
  BERTH_TRY(inbox_.welcome(welcome));
  welcome_ = std::move(welcome);
  on_welcome();
  for (auto& ended : outbox_.open(*welcome_, env_.boot_clock())) inbox_.refuse(std::move(ended));
  if (wake_) wake_();
  return {};
}

void AgentSession::lose(Error because) {
  lost_ = std::move(because);
  stream_.close();
  arm();
  if (!wake_) wake();
}

}  // namespace berth::agent
