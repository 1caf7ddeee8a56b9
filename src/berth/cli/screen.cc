#include "berth/cli/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/table.h"

namespace berth::cli {
namespace {

constexpr Duration kLiveEvery = std::chrono::milliseconds(100);
constexpr Duration kPlainEvery = std::chrono::seconds(2);
constexpr Duration kPatience = std::chrono::seconds(1);  // before a single command's wait is told

std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string bar(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t kWidth = 12;
  const auto full = static_cast<std::size_t>(whole > 0 ? part * kWidth / whole : kWidth);
  return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "]";
}

}  // namespace

Screen::Screen(std::string run, bool through, bool quiet)
    : run_(std::move(run)),
      through_(through),
      quiet_(quiet),
      live_(!quiet && isatty(STDERR_FILENO) == 1) {}

Screen::~Screen() {
  wipe();
}

void Screen::wipe() {
  if (drawn_) print_error("\r\x1b[K");
  drawn_ = false;
}

void Screen::say(const std::string& text) {
  if (quiet_) return;
  wipe();
  print_error(text + "\n");
  drawn_at_.reset();
}

std::string Screen::line(const run::Progress& progress, Mono now) const {
  const store::Counts& counts = progress.counts;
  const std::int64_t finished = counts.done + counts.cached + counts.failed;
  const Duration elapsed = now - progress.began;
  std::string text =
      fmt::format("{} {} {}/{}", run_, bar(finished, progress.total), finished, progress.total);
  if (counts.running > 0) text += fmt::format("  {} running", counts.running);
  if (counts.failed > 0) text += fmt::format("  {} failed", counts.failed);
  if (progress.best)
    text += fmt::format("  best {:.6g} (/{})", progress.best->value, progress.best->label);
  text += fmt::format("  {}", format_duration(elapsed));
  const std::int64_t here = finished - progress.finished_before;
  if (here > 0 && finished < progress.total)
    text +=
        fmt::format("  left ~{}", format_duration(elapsed / here * (progress.total - finished)));
  if (!progress.waiting_for.empty()) text += fmt::format("  waiting: {}", progress.waiting_for);
  return text;
}

void Screen::on_progress(const run::Progress& progress, Mono now) {
  if (quiet_) return;
  if (!began_) began_ = now;
  if (through_) {
    if (progress.waiting_for.empty() || now - *began_ < kPatience || last_ == "waiting") return;
    last_ = "waiting";
    return say(fmt::format("{} waits: {}", run_, progress.waiting_for));
  }
  const bool over = progress.counts.waiting + progress.counts.running == 0;
  if (drawn_at_ && now - *drawn_at_ < (live_ ? kLiveEvery : kPlainEvery) && !over) return;
  if (live_) {
    print_error("\r" + clip(line(progress, now), terminal_columns() - 1) + "\x1b[K");
    drawn_ = true;
  } else {
    const std::string text = line(progress, now);
    if (text == last_ || (!drawn_at_ && !over)) {
      if (!drawn_at_) drawn_at_ = now;
      return;
    }
    last_ = text;
    print_error(text + "\n");
  }
  drawn_at_ = now;
}

void Screen::on_task_end(const run::TaskEnd& end) {
  if (through_ || end.state == store::TaskState::done || end.state == store::TaskState::stopped)
    return;
  say(fmt::format("{}/{} {}: {}{}{}", run_, end.label, end.again ? "tries again" : "failed",
                  end.cause, end.detail.empty() ? "" : ": ", end.detail));
}

void Screen::on_output(const exec::Output& output) {
  if (!through_) return;
  std::FILE* to = output.stream == exec::Stream::out ? stdout : stderr;
  std::fwrite(output.bytes.data(), 1, output.bytes.size(), to);
  std::fflush(to);
}

void Screen::on_note(const std::string& note) {
  say(fmt::format("{}: {}", run_, note));
}

}  // namespace berth::cli
