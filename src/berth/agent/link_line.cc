// A Link whose connection is a command that may break: made again, with what it swallowed said
// again. Tokens and numbers make what is said twice count once.
#include <algorithm>

#include "berth/agent/link.h"

namespace berth::agent {
namespace {

constexpr Duration kDialFirst = std::chrono::milliseconds(500);
constexpr Duration kDialMost = std::chrono::seconds(10);

}  // namespace

std::unique_ptr<Link> Link::through(os::Env& env, LineOptions line, Duration patience,
                                    Duration lease, RunnerSide side,
                                    std::function<void()> on_contact) {
  auto link = std::unique_ptr<Link>(new Link(env, std::move(side)));
  link->door_ = std::move(line);
  link->on_contact_ = std::move(on_contact);
  link->patience_ = patience;
  link->lease_ = lease;
  link->dial();
  return link;
}

void Link::dial() {
  dial_at_.reset();
  stream_.reset();
  stream_status_ = {};
  greet();
  line_ = std::make_unique<Line>(*env_, *door_, [this] { wake(); });
  opened_at_ = env_->boot_clock();
  arm();
}

void Link::redial(Error because) {
  stream_.close();
  welcomed_ = false;
  if (line_) because = line_->because(std::move(because));
  cut_ = std::move(because);
  line_.reset();
  // An agent that can be reached again in time goes on: several calls fall within its lease.
  const Duration most = std::min(kDialMost, patience().value_or(kDialMost * 8) / 8);
  const Duration pause = std::min(most, kDialFirst * (1 << std::min(dials_++, 6)));
  const auto jitter = static_cast<std::int64_t>(env_->random() % 1024);  // 50 % to 150 %
  dial_at_ = env_->boot_clock() + pause * (512 + jitter) / 1024;
}

void Link::step_line() {
  const Mono now = env_->boot_clock();
  // Another word might renew the lease whose end is waited for.
  if (const auto most = patience(); most && now - heard_at_ >= *most && !stream_.is_open()) {
    line_.reset();
    dial_at_.reset();
    return;
  }
  if (!line_) {
    if (!dial_at_ || now >= *dial_at_) dial();
    return;
  }
  if (const auto& lost = line_->lost()) {
    // Where there is no such agent, or none can be, another call finds none either.
    if (lost->kind == ErrorKind::impossible) return lose(*lost);
    return redial(*lost);
  }
  if (!stream_.is_open()) {
    if (!line_->here()) return;
    note_contact();
    stream_.open(line_->take());
    opened_at_ = now;
    note_words();
    if (const auto status = stream_.write(); !status) return redial(status.error());
  }
  step_stream();
  const auto most = patience();
  if (!lost_ && line_ && most && now - std::max(heard_at_, opened_at_) >= *most / kSilencesALease)
    redial({ErrorKind::busy, "the connection fell silent"});
}

void Link::note_contact() {
  const Mono now = env_->boot_clock();
  const bool fresh = welcome_ && contact_noted_at_ &&
                     now - *contact_noted_at_ < welcome_->lease / kKeepalivesALease;
  if (!on_contact_ || fresh) return;
  on_contact_();
  contact_noted_at_ = now;
}

/// What is sent with the next call may be read there.
void Link::note_words() {
  if (door_ && stream_.is_open() && stream_.unsent() > 0) said_at_ = env_->boot_clock();
}

void Link::say_again() {
  cut_.reset();
  dials_ = 0;
  keepalive_at_ = env_->boot_clock();
  std::erase_if(launches_, [&](const auto& each) {
    const auto& [token, launch] = each;
    const auto& known = welcome_->attempts;
    return std::ranges::find(known, token, &Attempt::token) == known.end() &&
           !say_launch(token, launch);
  });
  for (const Token token : cancelled_) stream_.send_line(encode(Call(exec::Cancel{token})));
  if (abandoned_) stream_.send_line(encode(Call(exec::Abandon{})));
  if (last_) stream_.send_line(encode(*last_));
}

}  // namespace berth::agent
