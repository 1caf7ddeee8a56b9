#include "berth/machine/health_watch.h"

#include <array>
#include <csignal>

#include "berth/base/text.h"
#include "berth/os/log.h"

namespace berth::machine {
namespace {

constexpr Duration kStartAgain = std::chrono::seconds(30);
constexpr std::size_t kLongestLine = 1 << 20;

}  // namespace

void HealthWatch::watch(std::vector<os::Watch>& watches) const {
  watches.push_back({.fd = child_.out.number()});
}

std::optional<Mono> HealthWatch::deadline() const {
  return start_at_;
}

std::optional<DeviceNews> HealthWatch::turn(bool ready) {
  if (start_at_ && env_->now() >= *start_at_) start();
  if (!ready || !child_.out) return std::nullopt;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto got = env_->read_some(child_.out, buffer);
    if (got && !*got) break;
    if (!got || **got == 0 || unread_.size() > kLongestLine) {
      os::log_event(*env_, "health watch ended", {});
      end();
      start_at_ = env_->now() + kStartAgain;
      break;
    }
    unread_.append(buffer.data(), **got);
  }
  std::optional<DeviceNews> latest;
  for (std::size_t stop; (stop = unread_.find('\n')) != std::string::npos;) {
    if (auto news = news_of_json(std::string_view(unread_).substr(0, stop)))
      latest = *std::move(news);
    unread_.erase(0, stop + 1);
  }
  return latest;
}

void HealthWatch::start() {
  start_at_.reset();
  unread_.clear();
  auto child = env_->spawn(program_);
  if (child) {
    child_ = *std::move(child);
    child_.err.reset();
    return;
  }
  os::log_event(*env_, "health watch", {{"error", json_quote(child.error().message)}});
  start_at_ = env_->now() + kStartAgain;
}

void HealthWatch::end() {
  if (child_.pid == 0) return;
  (void)env_->signal_group(child_.pid, SIGKILL);
  // A driver that hangs holds even a killed process: it is left to init then.
  std::vector<os::Watch> gone{{.fd = child_.exited.number()}};
  (void)env_->wait(gone, env_->now() + std::chrono::seconds(1));
  (void)env_->reap(child_);
  child_ = {};
}

Status watch_health(os::Env& env, const DeviceOptions& options, const topology::Topology& first,
                    const std::string& ledger_directory, Duration every, const os::Fd& out) {
  while (env.stop_signals() == 0) {
    // Drivers that do not answer make no news; devices that are gone do.
    if (const auto news = read_news(env, options, first, ledger_directory))
      BERTH_TRY(env.write_all(out, to_json(*news) + "\n"));
    const auto jitter = static_cast<std::int64_t>(env.random() % 512);  // 75 % to 125 %
    BERTH_TRY(env.wait({}, env.now() + every * (768 + jitter) / 1024));
  }
  return {};
}

}  // namespace berth::machine
