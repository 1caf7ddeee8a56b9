#include "berth/os/child_process.h"

#include <array>
#include <csignal>
#include <utility>

namespace berth::os {
namespace {

constexpr Duration kDiesWithin = std::chrono::seconds(1);

}  // namespace

ChildProcess::ChildProcess(Env& env, Loop& loop, const SpawnSpec& spec, Print print, End end,
                           Duration grace)
    : env_(env),
      print_(std::move(print)),
      end_(std::move(end)),
      grace_(grace),
      exits_(loop, [this] { on_exit(); }),
      prints_(loop, [this] { read(Stream::out); }),
      complains_(loop, [this] { read(Stream::err); }),
      fails_(loop, [this] { finish(std::unexpected(*error_)); }) {
  auto child = env.spawn(spec);
  if (!child) {
    error_ = child.error();
    fails_.set(env.now());
    return;
  }
  child_ = *std::move(child);
  exits_.watch(child_->exited.number());
  prints_.watch(child_->out.number());
  complains_.watch(child_->err.number());
}

void ChildProcess::kill() {
  for (Poll* poll : {&exits_, &prints_, &complains_}) poll->stop();
  fails_.set(std::nullopt);
  if (!child_) return;
  std::array watches{Watch{.fd = child_->exited.number()}};
  const auto send = [&](int signal, Duration wait) {
    (void)env_.signal_group(child_->pid, signal);
    (void)env_.wait(watches, env_.now() + wait);
  };
  if (grace_ > Duration(0)) send(SIGTERM, grace_);
  if (!watches[0].ready) send(SIGKILL, kDiesWithin);
  (void)env_.reap(*child_);
  child_.reset();
}

/// Returns the number of bytes, which is 0 if there are none now; the stream is not watched after
/// its end.
std::size_t ChildProcess::read(Stream stream) {
  ReadBuffer buffer;
  const Fd& fd = stream == Stream::out ? child_->out : child_->err;
  const auto got = env_.read_some(fd, buffer);
  if (!got || (*got && **got == 0)) (stream == Stream::out ? prints_ : complains_).stop();
  if (!got || !*got || **got == 0) return 0;
  if (print_) print_(stream, {buffer.data(), **got});
  return **got;
}

void ChildProcess::on_exit() {
  const auto status = env_.reap(*child_);
  if (status && !*status) return;
  for (const auto stream : {Stream::out, Stream::err})
    while (read(stream) > 0) {
    }
  if (!status) kill();
  child_.reset();
  finish(status ? Result<ExitStatus>(**status) : std::unexpected(status.error()));
}

void ChildProcess::finish(const Result<ExitStatus>& status) {
  for (Poll* poll : {&exits_, &prints_, &complains_}) poll->stop();
  const End end = std::exchange(end_, {});  // which may destroy this object
  end(status);
}

Result<ExitStatus> run_child(Env& env, const SpawnSpec& spec, const ChildProcess::Print& print,
                             std::optional<Mono> until) {
  Loop loop(env);  // nothing else is called meanwhile
  const int stops = env.stop_signals();
  std::optional<Result<ExitStatus>> end;
  const ChildProcess child(env, loop, spec, print, [&](const auto& status) { end = status; });
  for (;;) {
    BERTH_TRY(loop.turn(until));
    if (end) return *std::move(end);
    if (env.stop_signals() != stops) return fail(ErrorKind::interrupted, "stopped");
    if (until && env.now() >= *until) return fail(ErrorKind::busy, "no answer");
  }
}

}  // namespace berth::os
