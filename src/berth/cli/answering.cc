#include "berth/cli/answering.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace berth::cli {
namespace {

constexpr std::size_t kLongest = 64 * 1024;  // bytes that are read before a question asks for them

/// A terminal's input belongs to the job in its foreground; any other job that reads it is stopped.
bool may_read(int fd) {
  return isatty(fd) == 0 || tcgetpgrp(fd) == getpgrp();
}

bool readable(int fd) {
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLIN | POLLHUP)) != 0;
}

}  // namespace

void Answering::add(run::Question question) {
  questions_.push_back(std::move(question));
  if (opened_) return;
  opened_ = true;
  if (auto in = env_.open_read("/dev/stdin")) in_ = *std::move(in);
}

void Answering::drop(const std::string& label) {
  std::erase_if(questions_, [&](const auto& question) { return question.label == label; });
}

void Answering::watch(std::vector<os::Watch>& watches) const {
  if (listening() && typed_.size() < kLongest && may_read(in_.number()))
    watches.push_back({.fd = in_.number()});
}

std::vector<std::string> Answering::read() {
  std::vector<std::string> notes;
  std::array<char, 4096> buffer;
  if (listening() && typed_.size() < kLongest && may_read(in_.number()) && readable(in_.number())) {
    const auto got = env_.read_some(in_, buffer);
    if (!got || (*got && **got == 0)) {
      in_.reset();
      if (!typed_.empty() && typed_.back() != '\n') typed_ += '\n';
    } else if (*got) {
      typed_.append(buffer.data(), **got);
    }
  }
  for (;;) {
    const auto newline = typed_.find('\n');
    if (newline == std::string::npos && typed_.size() >= kLongest) typed_.clear();
    if (newline == std::string::npos || questions_.empty()) return notes;
    const std::string line = typed_.substr(0, newline);
    typed_.erase(0, newline + 1);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto& question = questions_.front();
    if (const auto taken = question.answer(line))
      questions_.pop_front();
    else
      notes.push_back(question.label + ": " + taken.error().message);
  }
}

}  // namespace berth::cli
