#include "berth/agent/protocol/connection.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/spawn.h"

namespace berth::agent {
namespace {

constexpr std::size_t kNoiseMost = 1 << 20;  // bytes before the first word
constexpr std::size_t kComplaintMost = 16 << 10;
constexpr std::size_t kPiece = 256 << 10;                     // of the file
constexpr Duration kLinger = std::chrono::milliseconds(200);  // for what is still on its way

/// The last line that says something: what ssh complains of stands behind what a host greets with.
std::string last_line(std::string_view text) {
  const auto lines = split(trim(text), '\n');
  return lines.empty() ? "" : clip(trim(lines.back()), 300);
}

}  // namespace

Connection::Connection(os::Env& env, ConnectionOptions options, std::function<void()> on_event)
    : env_(&env),
      options_(std::move(options)),
      on_event_(std::move(on_event)),
      readable_(env.loop(), [this] { step(); }),
      writable_(env.loop(), [this] { step(); }),
      complains_(env.loop(), [this] { read_complaints(); }),
      gives_up_(env.loop(), [this] {
        lose(because({ErrorKind::busy, fmt::format("no answer within {}",
                                                   format_duration(options_.answers_within))}));
        on_event_();
      }) {
  auto child = env.spawn({.argv = options_.command,
                          .environment = env.environment(),
                          .directory = "/",
                          .cores = {},
                          .join_files = {},
                          .talks = true});
  if (!child) {
    lost_ = child.error();
    return;
  }
  child_ = *std::move(child);
  readable_.watch(child_->out.number());
  complains_.watch(child_->err.number());
  gives_up_.set(env.now() + options_.answers_within);
}

Connection::~Connection() {
  if (!child_) return;
  readable_.stop();
  writable_.stop();
  complains_.stop();
  child_->out.reset();
  child_->err.reset();
  // What was said on the connection last is still on its way; one that hangs is not waited for.
  const auto gone = [&] {
    std::array<os::Watch, 1> watches{os::Watch{.fd = child_->exited.number()}};
    (void)env_->wait(watches, env_->now() + kLinger);
    const auto reaped = env_->reap(*child_);
    return !reaped || *reaped;
  };
  if (here_ && gone()) return;
  (void)env_->signal_pid(child_->pid, SIGKILL);
  (void)gone();
}

os::Fd Connection::take() {
  readable_.stop();
  return std::move(child_->out);
}

void Connection::read_complaints() {
  std::array<char, 4096> buffer;
  const auto got = env_->read_some(child_->err, buffer);
  if (!got || (*got && **got == 0)) {
    complains_.stop();
    child_->err.reset();
  } else if (*got && complaints_.size() < kComplaintMost) {
    complaints_.append(buffer.data(), **got);
  }
}

void Connection::step() {
  read();
  if (bringing_ && !here_ && !lost_) bring();
  if (!here_ && !lost_) {
    writable_.watch(file_ ? child_->out.number() : -1, os::Poll::For::writing);
    return;
  }
  readable_.stop();
  writable_.stop();
  gives_up_.set(std::nullopt);
  on_event_();
}

void Connection::read() {
  std::array<char, 4096> buffer;
  const auto got = env_->read_some(child_->out, buffer);
  if (got && !*got) return;
  if (!got || **got == 0)
    return lose(because({ErrorKind::io, "the connection ended before berth-agent answered"}));
  received_.append(buffer.data(), **got);
  for (auto end = received_.find('\n'); end != std::string::npos && !here_ && !lost_;
       end = received_.find('\n')) {
    on_line(trim(std::string_view(received_).substr(0, end)));
    received_.erase(0, end + 1);
  }
  if (here_ && !received_.empty())
    return lose({ErrorKind::invalid, "berth-agent sent a message before it was asked"});
  if (received_.size() > kNoiseMost)
    lose({ErrorKind::invalid, "the host sent a line without an end before berth-agent answered"});
}

void Connection::on_line(std::string_view line) {
  if (line == kHere) {
    here_ = true;
  } else if (line.starts_with(kCannot)) {
    lose({ErrorKind::impossible, "berth-agent cannot " + clip(line.substr(kCannot.size()), 400)});
  } else if (line == kWanted && !bringing_) {
    auto file = env_->open_read(options_.agent_file);
    if (!file) return lose(file.error());
    file_ = *std::move(file);
    bringing_ = true;
  }
}

void Connection::bring() {
  while (file_) {
    if (unsent_.empty()) {
      auto piece = env_->read_at(file_, brought_, kPiece);
      if (!piece) return lose(piece.error());
      if (piece->empty()) return file_.reset();
      unsent_ = *std::move(piece);
    }
    const auto put = env_->write_some(child_->out, unsent_);
    if (!put) return lose(because(put.error()));
    if (!*put) return;
    unsent_.erase(0, **put);
    brought_ += static_cast<std::int64_t>(**put);
    gives_up_.set(env_->now() + options_.answers_within);
  }
}

Error Connection::because(Error otherwise) {
  if (!child_) return otherwise;
  // Its complaint may be on its way.
  const Mono until = env_->now() + kLinger;
  while (child_->err && env_->now() < until) {
    std::array<os::Watch, 1> watches{os::Watch{.fd = child_->err.number()}};
    (void)env_->wait(watches, until);
    std::array<char, 4096> buffer;
    const auto got = env_->read_some(child_->err, buffer);
    if (!got || (*got && **got == 0)) {
      complains_.stop();
      child_->err.reset();
    }
    if (got && *got && complaints_.size() < kComplaintMost)
      complaints_.append(buffer.data(), **got);
    if (!watches[0].ready) break;
  }
  const std::string said = last_line(complaints_);
  if (said.empty()) return otherwise;
  return {ErrorKind::io, said};
}

void Connection::lose(Error error) {
  lost_ = std::move(error);
}

}  // namespace berth::agent
