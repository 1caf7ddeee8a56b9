#include "berth/cli/top/own_child.h"

#include <array>
#include <csignal>

namespace berth::cli {
namespace {

constexpr Duration kDiesWithin = std::chrono::seconds(1);

}  // namespace

OwnChild::OwnChild(os::Env& env, const std::vector<std::string>& words, Printed printed,
                   Ended ended)
    : env_(env), printed_(std::move(printed)), ended_(std::move(ended)) {
  std::vector<std::string> argv{"/proc/self/exe"};
  argv.insert(argv.end(), words.begin(), words.end());
  auto child = env.spawn({.argv = std::move(argv),
                          .environment = env.environment(),
                          .directory = env.real_path(".").value_or("/"),
                          .cores = {},
                          .join_files = {}});
  if (!child) {
    printed_(child.error().message + "\n");
    fails_.set(env.now());
    return;
  }
  child_ = *std::move(child);
  exits_.watch(child_->exited.number());
  prints_.watch(child_->out.number());
  complains_.watch(child_->err.number());
}

OwnChild::~OwnChild() {
  if (!child_) return;
  (void)env_.signal_group(child_->pid, SIGTERM);
  std::array watches{os::Watch{.fd = child_->exited.number()}};
  (void)env_.wait(watches, env_.now() + kDiesWithin);
  if (!watches[0].ready) (void)env_.signal_group(child_->pid, SIGKILL);
  (void)env_.wait(watches, env_.now() + kDiesWithin);
  (void)env_.reap(*child_);
}

/// One piece a turn, so that much output does not keep keys waiting.
void OwnChild::read(os::Poll& poll, const os::Fd& fd) {
  os::ReadBuffer buffer;
  const auto got = env_.read_some(fd, buffer);
  if (!got || (*got && **got == 0)) return poll.stop();
  if (*got) printed_({buffer.data(), **got});
}

void OwnChild::on_exit() {
  const auto status = env_.reap(*child_);
  if (status && !*status) return;
  os::ReadBuffer buffer;
  for (const auto* fd : {&child_->out, &child_->err})
    for (auto got = env_.read_some(*fd, buffer); got && *got && **got > 0;
         got = env_.read_some(*fd, buffer))
      printed_({buffer.data(), **got});
  for (auto* poll : {&exits_, &prints_, &complains_}) poll->stop();
  child_.reset();
  ended_(!status                  ? kNotStarted
         : (*status)->signal != 0 ? 128 + (*status)->signal
                                  : (*status)->code);
}

}  // namespace berth::cli
