#include "berth/agent/line_stream.h"

#include <array>

namespace berth::agent {
namespace {

/// Read at most this much before others get their turn.
constexpr std::size_t kReadsATurn = 16;

}  // namespace

LineStream::LineStream(os::Env& env, std::function<void(Status)> on_event)
    : env_(&env),
      on_event_(std::move(on_event)),
      readable_(env.loop(),
                [this] {
                  auto status = read();
                  arm();
                  // It may end this stream.
                  const auto tell = on_event_;
                  tell(std::move(status));
                }),
      writable_(env.loop(), [this] {
        auto status = write();
        if (status && !ended_) return;
        const auto tell = on_event_;
        tell(std::move(status));
      }) {}

void LineStream::open(os::Fd fd) {
  fd_ = std::move(fd);
  arm();
}

void LineStream::close() {
  fd_.reset();
  arm();
}

void LineStream::reset() {
  close();
  in_.clear();
  out_.clear();
  taken_ = searched_ = sent_ = 0;
  ended_ = false;
}

void LineStream::set_reading(bool reads) {
  reads_ = reads;
  arm();
}

void LineStream::arm() {
  const int fd = ended_ ? -1 : fd_.number();
  readable_.watch(reads_ ? fd : -1);
  writable_.watch(unsent() > 0 ? fd : -1, os::Poll::For::writing);
}

void LineStream::send(std::string_view line) {
  out_ += line;
  out_ += '\n';
  arm();
}

void LineStream::send_lines(std::string_view lines) {
  out_ += lines;
  arm();
}

Status LineStream::read() {
  in_.erase(0, taken_);
  searched_ -= taken_;
  taken_ = 0;
  if (searched_ == in_.size() && in_.size() > kMessageMost)
    return fail(ErrorKind::invalid, "a line of more than {} bytes", kMessageMost);
  os::ReadBuffer buffer;
  for (std::size_t reads = 0; reads < kReadsATurn; ++reads) {
    BERTH_ASSIGN(const auto got, env_->read_some(fd_, buffer));
    if (!got) break;
    ended_ = *got == 0;
    in_.append(buffer.data(), *got);
    if (*got < buffer.size()) break;
  }
  return {};
}

std::optional<std::string_view> LineStream::next() {
  const auto end = in_.find('\n', searched_);
  searched_ = end == std::string::npos ? in_.size() : end + 1;
  if (end == std::string::npos) return std::nullopt;
  const auto line = std::string_view(in_).substr(taken_, end - taken_);
  taken_ = end + 1;
  return line;
}

Status LineStream::write() {
  while (fd_ && unsent() > 0) {
    const auto put = env_->write_some(fd_, std::string_view(out_).substr(sent_));
    if (put && !*put) break;
    if (put) {
      sent_ += **put;
      continue;
    }
    // The other side may have said its last word before it closed.
    sent_ = out_.size();
    auto status = read();
    ended_ = true;
    if (!status) {
      arm();
      return status;
    }
  }
  if (unsent() == 0) {
    out_.clear();
    sent_ = 0;
  } else if (sent_ > out_.size() / 2) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  arm();
  return {};
}

}  // namespace berth::agent
