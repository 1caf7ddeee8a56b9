#include "berth/os/stop_signals_posix.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "berth/os/env.h"

namespace berth::os {
namespace {

std::atomic<int> g_stop_signals = 0;
std::atomic<int> g_stop_event = -1;
std::atomic<bool> g_interrupted = false;

extern "C" void on_stop_signal(int signal) {
  const int saved = errno;
  if (signal == SIGINT) g_interrupted.store(true);
  request_stop_posix();
  errno = saved;
}

}  // namespace

void request_stop_posix() {
  g_stop_signals.fetch_add(1);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(g_stop_event.load(), &one, sizeof one);
}

int stop_signals_posix() {
  return g_stop_signals.load();
}

bool interrupted_posix() {
  return g_interrupted.load();
}

int stop_signals_descriptor() {
  return g_stop_event.load();
}

void clear_stop_signals_descriptor() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto ignored = ::read(g_stop_event.load(), &count, sizeof count);
}

void install_stop_signals() {
  if (g_stop_event.load() >= 0) return;
  g_stop_event.store(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  struct sigaction action{};
  action.sa_handler = on_stop_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &action, nullptr);
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace berth::os
