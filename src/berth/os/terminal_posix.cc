#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "berth/os/stop_signals_posix.h"
#include "berth/os/terminal.h"

namespace berth::os {
namespace {

// The other screen, without the cursor, where a line that is too long does not go on in the next;
// and back. xterm's control sequences, which every terminal of today has.
constexpr std::string_view kTake = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[0m\x1b[2J";
constexpr std::string_view kGiveBack = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Ends a control sequence of which only a part was written.
constexpr std::string_view kCancel = "\x18";

constexpr std::array kEnding{SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};

// For the signal handlers.
int g_out = -1, g_changes = -1;
termios g_before{}, g_taken{};
std::array<struct sigaction, kEnding.size()> g_actions{};  // those before ours
struct sigaction g_stop_action{};
volatile std::sig_atomic_t g_is_taken = 0, g_is_partial = 0;
std::atomic<bool> g_stop = false, g_continued = false;

/// Writes all, and gives up where the terminal takes nothing for a second. Signal handlers call it.
void write_now(std::string_view bytes) {
  constexpr int kPatienceMs = 1000;
  while (!bytes.empty()) {
    const auto put = ::write(g_out, bytes.data(), bytes.size());
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    pollfd poll{g_out, POLLOUT, 0};
    if (put < 0 && errno != EINTR && (errno != EAGAIN || ::poll(&poll, 1, kPatienceMs) <= 0))
      return;
  }
}

void take() {
  // In the background this stops the process, until somebody brings it to the foreground or ends
  // it.
  while (tcsetattr(g_out, TCSANOW, &g_taken) != 0 && errno == EINTR)
    if (stop_signals_posix() > 0) return;
  g_is_taken = 1;
  write_now(kTake);
}

void give_back() {
  if (g_is_taken == 0) return;
  g_is_taken = 0;
  if (g_is_partial != 0) write_now(kCancel);
  g_is_partial = 0;
  write_now(kGiveBack);
  tcsetattr(g_out, TCSANOW, &g_before);
}

void wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(g_changes, &one, sizeof one);
}

extern "C" void on_terminal_signal(int signal) {
  const int saved = errno;
  if (signal == SIGTSTP) g_stop = true;
  if (signal == SIGCONT) g_continued = true;
  wake();
  errno = saved;
}

/// Gives the terminal back, and lets the signal do what it would have done.
extern "C" void on_ending_signal(int signal) {
  give_back();
  for (std::size_t i = 0; i < kEnding.size(); ++i)
    if (kEnding[i] == signal) sigaction(signal, &g_actions[i], nullptr);
  raise(signal);
}

struct sigaction action_of(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  return action;
}

/// A description of its own, so that others who have this terminal are not made non-blocking; where
/// it is another user's (su), theirs.
Fd own_descriptor(Env& env, int number, int flags) {
  const std::string path = "/proc/self/fd/" + std::to_string(number);
  int fd = ::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
  return fd >= 0 ? Fd(env, fd) : Fd();
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(Env& env) {
  Fd out = own_descriptor(env, STDOUT_FILENO, O_WRONLY);
  if (!out || tcgetattr(out.number(), &g_before) != 0)
    return fail(ErrorKind::invalid, "standard output is not a terminal");
  Fd in = isatty(STDIN_FILENO) == 1 ? own_descriptor(env, STDIN_FILENO, O_RDONLY) : Fd();
  Fd changes(env, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!changes) return fail(ErrorKind::io, "no descriptor is left");
  g_taken = g_before;
  g_taken.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  g_taken.c_iflag &= ~static_cast<tcflag_t>(IXON);  // Ctrl-S would seem to hang it
  g_taken.c_cc[VMIN] = 1;
  g_taken.c_cc[VTIME] = 0;
  g_out = out.number();
  g_changes = changes.number();
  g_stop = g_continued = false;
  const struct sigaction on_signal = action_of(on_terminal_signal);
  sigaction(SIGWINCH, &on_signal, nullptr);
  sigaction(SIGCONT, &on_signal, nullptr);
  sigaction(SIGTSTP, &on_signal, &g_stop_action);
  const struct sigaction on_ending = action_of(on_ending_signal);
  for (std::size_t i = 0; i < kEnding.size(); ++i) sigaction(kEnding[i], &on_ending, &g_actions[i]);
  take();
  return std::unique_ptr<Terminal>(
      new Terminal(env, std::move(in), std::move(out), std::move(changes)));
}

Terminal::~Terminal() {
  give_back();
  for (std::size_t i = 0; i < kEnding.size(); ++i) sigaction(kEnding[i], &g_actions[i], nullptr);
  const struct sigaction usual = action_of(SIG_DFL);
  sigaction(SIGWINCH, &usual, nullptr);
  sigaction(SIGCONT, &usual, nullptr);
  sigaction(SIGTSTP, &g_stop_action, nullptr);
  g_out = g_changes = -1;
}

Terminal::Size Terminal::size() const {
  winsize size{};
  if (ioctl(out_.number(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_row, size.ws_col};
}

std::optional<std::string> Terminal::read() {
  std::array<char, 4096> typed{};
  if (!in_) return "";
  const auto got = env_.read_some(in_, typed);
  if (!got || (*got && **got == 0)) return std::nullopt;
  return std::string(typed.data(), got->value_or(0));
}

bool Terminal::take_changes() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto ignored = ::read(changes_.number(), &count, sizeof count);
  if (g_stop.exchange(false)) {
    give_back();
    const struct sigaction ours = action_of(on_terminal_signal);
    sigaction(SIGTSTP, &g_stop_action, nullptr);
    raise(SIGTSTP);  // returns once the process goes on
    sigaction(SIGTSTP, &ours, nullptr);
    g_continued = true;
  }
  if (g_continued.exchange(false)) {
    waiting_.clear();
    g_is_partial = 0;
    take();
  }
  return count > 0;
}

void Terminal::write(std::string_view bytes) {
  waiting_ += bytes;
  flush();
}

void Terminal::flush() {
  while (!waiting_.empty()) {
    const auto put = ::write(out_.number(), waiting_.data(), waiting_.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EAGAIN) waiting_.clear();  // it is gone, which read() says
    if (put < 0) break;
    waiting_.erase(0, static_cast<std::size_t>(put));
  }
  g_is_partial = waiting_.empty() ? 0 : 1;
}

}  // namespace berth::os
