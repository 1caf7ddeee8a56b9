#include "berth/cli/answering.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace berth::cli {
namespace {

constexpr std::size_t kLongest = 64 * 1024;  // bytes that are read before a question asks for them
/// A job in the background looks so often whether it has come to the foreground: nothing tells it.
constexpr Duration kLooksForForeground = std::chrono::seconds(1);

/// A terminal's input belongs to the job in its foreground; any other job that reads it is stopped.
bool may_read(int fd) {
  return isatty(fd) == 0 || tcgetpgrp(fd) == getpgrp();
}

bool readable(int fd) {
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLIN | POLLHUP)) != 0;
}

}  // namespace

void Answering::add(engine::Question question) {
  questions_.push_back(std::move(question));
  if (!std::exchange(opened_, true))
    if (auto in = env_.open_read("/dev/stdin")) in_ = *std::move(in);
  looks_.no_later_than(env_.now());  // its answer may have been typed already
}

void Answering::drop(const std::string& label) {
  std::erase_if(questions_, [&](const auto& question) { return question.label == label; });
  listen();
}

void Answering::listen() {
  const bool wants = listening() && typed_.size() < kLongest;
  const bool may = wants && may_read(in_.number());
  input_.watch(may ? in_.number() : -1);
  if (wants && !may) looks_.no_later_than(env_.now() + kLooksForForeground);
}

/// Takes what has come, without blocking, and answers with it.
void Answering::read() {
  std::array<char, 4096> buffer;
  if (listening() && typed_.size() < kLongest && may_read(in_.number()) && readable(in_.number())) {
    const auto got = env_.read_some(in_, buffer);
    if (!got || (*got && **got == 0)) {
      input_.stop();
      in_.reset();
      if (!typed_.empty() && typed_.back() != '\n') typed_ += '\n';
    } else if (*got) {
      typed_.append(buffer.data(), **got);
    }
  }
  answer();
  listen();
}

void Answering::answer() {
  for (;;) {
    const auto newline = typed_.find('\n');
    if (newline == std::string::npos && typed_.size() >= kLongest) typed_.clear();
    if (newline == std::string::npos || questions_.empty()) return;
    const std::string line = typed_.substr(0, newline);
    typed_.erase(0, newline + 1);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto& question = questions_.front();
    if (const auto taken = question.answer(line))
      questions_.pop_front();
    else
      complain_(question.label + ": " + taken.error().message);
  }
}

}  // namespace berth::cli
