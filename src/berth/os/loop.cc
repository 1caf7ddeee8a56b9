#include "berth/os/loop.h"

#include <algorithm>
#include <utility>

#include "berth/os/env.h"

namespace berth::os {

Env::Env() = default;
Env::Env(const Env&) {}
Env::~Env() = default;

Loop& Env::loop() {
  if (!loop_) loop_ = std::make_unique<Loop>(*this);
  return *loop_;
}

Loop::Loop(Env& env) : env_(env) {}

Loop::~Loop() {
  BERTH_ASSERT(timers_.empty());
  BERTH_ASSERT(std::ranges::count(polls_, nullptr) == std::ssize(polls_));
}

Status Loop::turn(std::optional<Mono> until) {
  BERTH_ASSERT(!turning_);
  drop_withdrawn();
  if (!timers_.empty()) until = std::min(until.value_or(Mono::max()), timers_.begin()->first);
  // One that came while a callback waited for something woke only that.
  if (stops_ != env_.stop_signals()) until = env_.now();
  BERTH_TRY(env_.wait(watches_, until));
  turning_ = true;
  call_stopped();
  call_ready();
  call_due();
  turning_ = false;
  return {};
}

std::span<Watch> Loop::watches() {
  return watches_;
}

void Loop::call_stopped() {
  if (std::exchange(stops_, env_.stop_signals()) == env_.stop_signals()) return;
  for (StopSignal* each : std::vector(stop_signals_))
    if (std::ranges::find(stop_signals_, each) != stop_signals_.end()) each->stop_();
}

/// A callback may register more, which are not ready yet, and end what called it.
void Loop::call_ready() {
  for (std::size_t i = 0; i < polls_.size(); ++i) {
    if (!std::exchange(watches_[i].ready, false) || polls_[i] == nullptr) continue;
    const auto ready = polls_[i]->ready_;
    ready();
  }
}

/// Each once, even one that sets itself anew at once: descriptors have their turn too.
void Loop::call_due() {
  const Mono now = env_.now();
  for (auto due = std::distance(timers_.begin(), timers_.upper_bound(now));
       due > 0 && !timers_.empty() && timers_.begin()->first <= now; --due) {
    Timer& timer = *timers_.begin()->second;
    timer.set(std::nullopt);
    const auto call = timer.due_;
    call();
  }
}

void Loop::drop_withdrawn() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < polls_.size(); ++i) {
    if (polls_[i] == nullptr) continue;
    polls_[i]->at_ = kept;
    polls_[kept] = polls_[i];
    watches_[kept++] = watches_[i];
  }
  polls_.resize(kept);
  watches_.resize(kept);
}

Poll::Poll(Loop& loop, std::function<void()> ready)
    : loop_(loop), at_(loop.polls_.size()), ready_(std::move(ready)) {
  loop.polls_.push_back(this);
  loop.watches_.push_back({});
}

Poll::~Poll() {
  stop();
  loop_.polls_[at_] = nullptr;
}

StopSignal::StopSignal(Loop& loop, std::function<void()> stop)
    : loop_(loop), stop_(std::move(stop)) {
  loop.stop_signals_.push_back(this);
}

StopSignal::~StopSignal() {
  std::erase(loop_.stop_signals_, this);
}

void Poll::watch(int fd, For what) {
  Watch& watch = loop_.watches_[at_];
  const bool readable = what == For::reading;
  if (watch.fd != fd || watch.readable != readable) watch = {.fd = fd, .readable = readable};
}

void Timer::set(std::optional<Mono> at) {
  if (at == at_) return;
  if (at_) loop_.timers_.erase(entry_);
  at_ = at;
  if (at_) entry_ = loop_.timers_.emplace(*at_, this);
}

}  // namespace berth::os
