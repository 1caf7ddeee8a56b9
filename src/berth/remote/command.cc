#include "berth/remote/command.h"

#include <csignal>

#include "berth/base/units.h"

namespace berth::remote {
namespace {

constexpr std::size_t kOutMost = 16 << 20;  // the queue of a large site
constexpr std::size_t kErrMost = 16 << 10;

}  // namespace

Command::Command(os::Env& env, std::vector<std::string> argv, exec::Environment environment,
                 Duration most, std::function<void()> ended)
    : name_(argv.front()), most_(most), ended_(std::move(ended)), late_(env.loop(), [this] {
        outcome_.error = Error{
            ErrorKind::busy, fmt::format("{}: no answer within {}", name_, format_duration(most_))};
        close();
      }) {
  child_.emplace(
      env, env.loop(),
      os::SpawnSpec{
          .argv = std::move(argv), .environment = std::move(environment), .directory = "/"},
      [this](os::ChildProcess::Stream stream, std::string_view text) { on_print(stream, text); },
      [this](const Result<os::ExitStatus>& status) { on_end(status); });
  late_.set(env.now() + most);
}

void Command::close() {
  late_.set(std::nullopt);
  child_.reset();
  ended_();
}

void Command::on_print(os::ChildProcess::Stream stream, std::string_view text) {
  const bool is_error = stream == os::ChildProcess::Stream::err;
  std::string& into = is_error ? outcome_.err : outcome_.out;
  const std::size_t most = is_error ? kErrMost : kOutMost;
  const bool is_too_much = text.size() > most - into.size();
  into += text.substr(0, most - into.size());
  if (is_error || !is_too_much) return;  // the beginning of a complaint is enough
  outcome_.error =
      Error{ErrorKind::full, fmt::format("{}: more output than {} bytes", name_, most)};
  child_->signal(SIGKILL);
}

void Command::on_end(const Result<os::ExitStatus>& status) {
  if (status) {
    outcome_.exit_code = status->signal != 0 ? 128 + status->signal : status->code;
  } else {
    const bool is_named = status.error().message.starts_with(name_ + ":");
    outcome_.error = is_named ? status.error() : within(name_, status.error());
  }
  close();
}

std::optional<CommandEnd> Command::take() {
  if (child_) return std::nullopt;
  return std::move(outcome_);
}

}  // namespace berth::remote
