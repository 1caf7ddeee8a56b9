#include "berth/remote/command.h"

#include <array>
#include <csignal>

#include "berth/base/units.h"

namespace berth::remote {
namespace {

constexpr std::size_t kOutMost = 16 << 20;  // the queue of a large site
constexpr std::size_t kErrMost = 16 << 10;
constexpr Duration kDiesWithin = std::chrono::seconds(1);

}  // namespace

Command::Command(os::Env& env, std::vector<std::string> argv, exec::Environment environment,
                 Duration most, std::function<void()> ended)
    : env_(env), name_(argv.front()), most_(most), ended_(std::move(ended)) {
  auto child = env.spawn({.argv = std::move(argv),
                          .environment = std::move(environment),
                          .directory = "/",
                          .cores = {},
                          .join_files = {}});
  late_.set(env.now() + (child ? most : Duration(0)));
  if (!child) {
    const bool named = child.error().message.starts_with(name_ + ":");
    outcome_.error = named ? child.error() : within(name_, child.error());
    return;
  }
  child_ = *std::move(child);
  exits_.watch(child_->exited.number());
  prints_.watch(child_->out.number());
  complains_.watch(child_->err.number());
}

Command::~Command() {
  if (child_) kill();
}

void Command::kill() {
  (void)env_.signal_group(child_->pid, SIGKILL);
  std::array watches{os::Watch{.fd = child_->exited.number()}};
  (void)env_.wait(watches, env_.now() + kDiesWithin);
  (void)env_.reap(*child_);
}

void Command::close() {
  for (os::Poll* poll : {&exits_, &prints_, &complains_}) poll->stop();
  late_.set(std::nullopt);
  child_.reset();
  ended_();
}

void Command::read(os::Poll& poll, const os::Fd& fd, std::string& into, std::size_t most) {
  os::ReadBuffer buffer;
  for (;;) {
    const auto got = env_.read_some(fd, buffer);
    if (!got || (*got && **got == 0)) return poll.stop();
    if (!*got) return;
    into.append(buffer.data(), **got);
    if (into.size() <= most) continue;
    into.resize(most);
    if (&into == &outcome_.err) continue;  // the beginning of a complaint is enough
    outcome_.error =
        Error{ErrorKind::full, fmt::format("{}: more output than {} bytes", name_, most)};
    (void)env_.signal_group(child_->pid, SIGKILL);
    return poll.stop();
  }
}

void Command::read_all() {
  read(prints_, child_->out, outcome_.out, kOutMost);
  read(complains_, child_->err, outcome_.err, kErrMost);
}

void Command::on_exit() {
  const auto status = env_.reap(*child_);
  if (status && !*status) return;
  read_all();
  if (status) {
    outcome_.exit_code = (*status)->signal != 0 ? 128 + (*status)->signal : (*status)->code;
  } else {
    kill();
    outcome_.error = within(name_, status.error());
  }
  close();
}

void Command::on_deadline() {
  if (child_) {
    kill();
    outcome_.error = Error{ErrorKind::busy,
                           fmt::format("{}: no answer within {}", name_, format_duration(most_))};
  }
  close();
}

std::optional<CommandEnd> Command::take() {
  if (child_ || late_.at()) return std::nullopt;
  return std::move(outcome_);
}

}  // namespace berth::remote
