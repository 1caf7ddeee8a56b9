#include "berth/remote/command.h"

#include <array>
#include <csignal>

namespace berth::remote {
namespace {

constexpr std::size_t kOutMost = 16 << 20;  // the queue of a large site
constexpr std::size_t kErrMost = 16 << 10;

}  // namespace

Command::Command(os::Env& env, std::vector<std::string> argv, exec::Environment environment,
                 Duration most)
    : env_(&env), name_(argv.front()), until_(env.now() + most) {
  auto child = env.spawn({.argv = std::move(argv),
                          .environment = std::move(environment),
                          .directory = "/",
                          .cores = {},
                          .join_files = {}});
  if (child)
    child_ = *std::move(child);
  else
    outcome_.error = within(name_, child.error());
}

Command::~Command() {
  if (child_) end();
}

void Command::end() {
  (void)env_->signal_group(child_->pid, SIGKILL);
  wait(env_->now() + std::chrono::seconds(1));
  (void)env_->reap(*child_);
}

void Command::wait(Mono until) {
  if (!child_) return;
  std::array watches{os::Watch{.fd = child_->exited.number()}};
  (void)env_->wait(watches, until);
}

void Command::read(const os::Fd& fd, std::string& into, std::size_t most) {
  os::ReadBuffer buffer;
  for (;;) {
    const auto got = env_->read_some(fd, buffer);
    if (!got || !*got || **got == 0) return;
    into.append(buffer.data(), **got);
    if (into.size() <= most) continue;
    into.resize(most);
    if (&into == &outcome_.err) continue;  // the beginning of a complaint is enough
    outcome_.error =
        Error{ErrorKind::full, fmt::format("{}: more output than {} bytes", name_, most)};
    (void)env_->signal_group(child_->pid, SIGKILL);
    return;
  }
}

std::optional<CommandEnd> Command::look() {
  if (!child_) return outcome_;
  const auto status = env_->reap(*child_);
  read(child_->out, outcome_.out, kOutMost);
  read(child_->err, outcome_.err, kErrMost);
  if (status && *status) {
    outcome_.exit_code = (*status)->signal != 0 ? 128 + (*status)->signal : (*status)->code;
  } else {
    if (status && env_->now() < until_) return std::nullopt;
    end();
    outcome_.error = status ? Error{ErrorKind::busy, name_ + ": no answer in time"}
                            : within(name_, status.error());
  }
  child_.reset();
  return std::move(outcome_);
}

}  // namespace berth::remote
