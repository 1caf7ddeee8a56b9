#include "berth/machine/devices/device_program.h"

#include <array>
#include <csignal>

namespace berth::machine {
namespace {

constexpr Duration kStartAgain = std::chrono::seconds(30);
constexpr std::size_t kLongestLine = 1 << 20;

}  // namespace

DeviceProgram::DeviceProgram(os::Env& env, os::SpawnSpec program,
                             std::function<void(std::vector<std::string>)> on_lines,
                             std::function<void(const std::string&)> on_trouble)
    : env_(&env),
      program_(std::move(program)),
      on_lines_(std::move(on_lines)),
      on_trouble_(std::move(on_trouble)),
      prints_(env.loop(), [this] { read(); }),
      starts_(env.loop(), [this] { start(); }) {
  starts_.set(env.now());
}

void DeviceProgram::read() {
  std::array<char, 4096> buffer;
  for (;;) {
    const auto got = env_->read_some(child_.out, buffer);
    if (got && !*got) break;
    if (!got || **got == 0 || unread_.size() > kLongestLine) {
      end();
      try_later("it ended");
      break;
    }
    unread_.append(buffer.data(), **got);
  }
  std::vector<std::string> lines;
  for (std::size_t stop; (stop = unread_.find('\n')) != std::string::npos;) {
    lines.push_back(unread_.substr(0, stop));
    unread_.erase(0, stop + 1);
  }
  if (!lines.empty()) on_lines_(std::move(lines));
}

void DeviceProgram::start() {
  unread_.clear();
  auto child = env_->spawn(program_);
  if (!child) return try_later(child.error().message);
  child_ = *std::move(child);
  child_.err.reset();
  prints_.watch(child_.out.number());
}

void DeviceProgram::try_later(const std::string& because) {
  starts_.set(env_->now() + kStartAgain);
  if (on_trouble_) on_trouble_(because);
}

void DeviceProgram::end() {
  if (child_.pid == 0) return;
  prints_.stop();
  (void)env_->signal_group(child_.pid, SIGKILL);
  // A driver that hangs holds even a killed process: it is left to init then.
  std::vector<os::Watch> gone{{.fd = child_.exited.number()}};
  (void)env_->wait(gone, env_->now() + std::chrono::seconds(1));
  (void)env_->reap(child_);
  child_ = {};
}

Duration jittered(os::Env& env, Duration every) {
  const auto jitter = static_cast<std::int64_t>(env.random() % 512);  // 75 % to 125 %
  return every * (768 + jitter) / 1024;
}

}  // namespace berth::machine
