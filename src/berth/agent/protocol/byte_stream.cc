#include "berth/agent/protocol/byte_stream.h"

#include <utility>

namespace berth::agent {
namespace {

/// At most so many reads before others get their turn.
constexpr std::size_t kReadsATurn = 16;

}  // namespace

ByteStream::ByteStream(os::Env& env, std::function<void(Status)> on_event)
    : env_(&env),
      on_event_(std::move(on_event)),
      readable_(env.loop(),
                [this] {
                  auto status = read();
                  arm();
                  report(std::move(status));
                }),
      writable_(env.loop(), [this] { report(write()); }) {}

/// It may end this stream.
void ByteStream::report(Status status) {
  const auto on_event = on_event_;
  on_event(std::move(status));
}

void ByteStream::open(os::Fd fd) {
  fd_ = std::move(fd);
  arm();
}

void ByteStream::close() {
  readable_.stop();
  writable_.stop();
  fd_.reset();
}

void ByteStream::reset() {
  close();
  in_.clear();
  out_.clear();
  taken_ = sent_ = 0;
  ended_ = false;
}

void ByteStream::set_reading(bool reads) {
  reads_ = reads;
  arm();
}

void ByteStream::arm() {
  const int fd = ended_ ? -1 : fd_.number();
  readable_.watch(reads_ ? fd : -1);
  writable_.watch(unsent() > 0 ? fd : -1, os::Poll::For::writing);
}

void ByteStream::send(std::string_view bytes) {
  out_ += bytes;
  arm();
}

Status ByteStream::read() {
  in_.erase(0, std::exchange(taken_, 0));
  os::ReadBuffer buffer;
  for (std::size_t reads = 0; reads < kReadsATurn && !ended_; ++reads) {
    const auto got = env_->read_some(fd_, buffer);
    ended_ = !got || *got == 0U;
    if (!got) return std::unexpected(got.error());
    if (!*got) break;
    in_.append(buffer.data(), **got);
    if (**got < buffer.size()) break;
  }
  return {};
}

Status ByteStream::write() {
  Status status;
  while (fd_ && !ended_ && unsent() > 0) {
    const auto put = env_->write_some(fd_, std::string_view(out_).substr(sent_));
    if (put && !*put) break;
    if (put) {
      sent_ += **put;
      continue;
    }
    // The other side may have said its last word before it closed.
    sent_ = out_.size();
    status = read();
    ended_ = true;
  }
  if (unsent() == 0 || sent_ > out_.size() / 2) out_.erase(0, std::exchange(sent_, 0));
  arm();
  return status;
}

}  // namespace berth::agent
