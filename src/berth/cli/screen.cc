#include "berth/cli/screen.h"
#include "berth/cli/print.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/visible.h"
#include "berth/engine/queries/run_record.h"

namespace berth::cli {
namespace {

constexpr Duration kLiveEvery = std::chrono::milliseconds(100);
constexpr Duration kLiveClock = std::chrono::seconds(1);  // while nothing but the time changes
constexpr Duration kPlainEvery = std::chrono::seconds(2);
constexpr Duration kPlainClock = std::chrono::minutes(1);
/// A reason to wait is printed once it has been the same for so long.
constexpr Duration kReportWaitAfter = std::chrono::seconds(1);

/// Above so many bytes of output that waits to be shown, tasks have to wait with theirs.
constexpr std::size_t kMostWaiting = 1 << 20;

bool writable(int fd) {
  pollfd poll{fd, POLLOUT, 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLOUT | POLLERR)) != 0;
}

struct Size {
  std::size_t rows = 24, columns = 80;
};
Size terminal_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_row, size.ws_col};
}

std::string progress_bar(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t kWidth = 12;
  const auto full = static_cast<std::size_t>(whole > 0 ? part * kWidth / whole : kWidth);
  return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "]";
}

/// Text such as "reading /data/in.txt for 12 s"; the time is left out below a second.
std::string with_time(const std::string& what, std::optional<Mono> since, Mono now) {
  const auto time = since ? std::chrono::floor<std::chrono::seconds>(now - *since) : Duration(0);
  return time == Duration(0) ? what : fmt::format("{} for {}", what, format_duration(time));
}

}  // namespace

Screen::Screen(os::Env& env, std::string run, Show show)
    : env_(env),
      run_(std::move(run)),
      out_(env, STDOUT_FILENO),
      err_(env, STDERR_FILENO),
      show_(show),
      live_(show == Show::all && isatty(STDERR_FILENO) == 1),
      shows_(env.loop(), [] {}),
      answering_(env, [this](const auto& note) { print_line(note); }) {}

Screen::~Screen() {
  erase();
  print_error(final_line_);
}

void Screen::erase() {
  if (drawn_ > 0) print_exact_error(cursor_to_top() + "\x1b[J");
  drawn_ = 0;
}

/// Moves the cursor from the last of the live lines to the first.
std::string Screen::cursor_to_top() const {
  return drawn_ > 1 ? fmt::format("\r\x1b[{}A", drawn_ - 1) : "\r";
}

/// Draws a line for each step that has tasks, as many as there is room for, one for all of them,
/// and the leading trials.
void Screen::draw(const engine::Progress& progress, Mono now) {
  const auto [rows, columns] = terminal_size();
  std::vector<std::string> lines;
  for (const auto& step : progress.steps) {
    const store::Counts& counts = step.counts;
    const std::int64_t finished = counts.done + counts.cached + counts.skipped + counts.failed;
    const std::int64_t total = finished + counts.waiting + counts.running + counts.stopped;
    if (total == 0 || lines.size() + 2 >= rows) continue;
    std::string text =
        fmt::format("  {:<16} {} {}/{}", step.name, progress_bar(finished, total), finished, total);
    if (counts.cached > 0) text += fmt::format("  {} cached", counts.cached);
    if (counts.skipped > 0) text += fmt::format("  {} skipped", counts.skipped);
    if (counts.running > 0) text += fmt::format("  {} running", counts.running);
    if (counts.failed > 0) text += fmt::format("  {} failed", counts.failed);
    lines.push_back(std::move(text));
  }
  lines.push_back(progress_line(progress, now));
  if (!progress.waiting_for.empty())
    lines.push_back("  waits: " + with_time(progress.waiting_for + progress.how_far,
                                            progress.waiting_since, now));
  for (std::size_t i = 0; i < progress.leaders.size() && lines.size() + 2 < rows; ++i) {
    const auto& leader = progress.leaders[i];
    std::string text = fmt::format("  {}. /{}  {:.6g}", i + 1, leader.label, leader.score);
    for (const auto& [name, value] : leader.params)
      text += fmt::format("  {} {}", name, clip(value, 32));
    lines.push_back(std::move(text));
  }
  std::string text = cursor_to_top();
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? "" : "\n") + visible_text(clip(lines[i], columns - 1)) + "\x1b[K";
  print_exact_error(text + "\x1b[J");
  drawn_ = lines.size();
}

void Screen::print_line(const std::string& text) {
  if (show_ == Show::nothing || !writable(STDERR_FILENO)) return;
  erase();
  print_error(text + "\n");
  drawn_at_.reset();
}

std::string Screen::state_text(const engine::Progress& progress) const {
  const store::Counts& counts = progress.counts;
  const std::int64_t finished = counts.done + counts.cached + counts.skipped + counts.failed;
  std::string text = fmt::format("{} {} {}/{}", run_, progress_bar(finished, progress.total),
                                 finished, progress.total);
  if (counts.cached > 0) text += fmt::format("  {} cached", counts.cached);
  if (counts.skipped > 0) text += fmt::format("  {} skipped", counts.skipped);
  if (counts.running > 0) text += fmt::format("  {} running", counts.running);
  if (counts.failed > 0) text += fmt::format("  {} failed", counts.failed);
  if (!progress.leaders.empty())
    text +=
        fmt::format("  best {:.6g} (/{})", progress.leaders[0].score, progress.leaders[0].label);
  return text;
}

std::string Screen::progress_line(const engine::Progress& progress, Mono now) const {
  const store::Counts& counts = progress.counts;
  const std::int64_t finished = counts.done + counts.cached + counts.skipped + counts.failed;
  const Duration elapsed = now - progress.began;
  std::string text = state_text(progress);
  text += fmt::format("  {}", format_duration(elapsed));
  const std::int64_t here = finished - progress.finished_before;
  if (here > 0 && finished < progress.total)
    text +=
        fmt::format("  left ~{}", format_duration(elapsed / here * (progress.total - finished)));
  if (!progress.doing.empty())
    text += "  " + with_time(progress.doing + progress.how_far, progress.doing_since, now);
  return text;
}

/// Prints each reason once until another one is printed; a reason that passes at once is left out.
void Screen::report_wait(const engine::Progress& progress, Mono now) {
  if (progress.waiting_for != waits_for_) {
    waits_for_ = progress.waiting_for;
    waits_since_ = now;
  }
  if (waits_for_.empty() || waits_for_ == reported_wait_) return;
  if (now - waits_since_ < kReportWaitAfter)
    return shows_.no_later_than(waits_since_ + kReportWaitAfter);
  reported_wait_ = waits_for_;
  print_line(fmt::format("{} waits: {}", run_,
                         with_time(waits_for_ + progress.how_far, progress.waiting_since, now)));
}

void Screen::on_progress(const engine::Progress& progress, Mono now) {
  if (show_ == Show::nothing || answering_.listening()) return;
  if (!live_) report_wait(progress, now);
  if (show_ != Show::all) return;
  const bool over = progress.counts.waiting + progress.counts.running == 0;
  final_line_.clear();
  if (over && !live_) {
    final_line_ = progress_line(progress, now) + "\n";
    return;
  }
  if (!writable(STDERR_FILENO)) return shows_.no_later_than(now + kPlainEvery);
  if (!live_ && !drawn_at_) drawn_at_ = now;
  std::string state = state_text(progress) + progress.doing;
  const Duration pause = live_ ? kLiveEvery : state == last_ ? kPlainClock : kPlainEvery;
  if (drawn_at_ && now < *drawn_at_ + pause && !over)
    return shows_.no_later_than(*drawn_at_ + pause);
  if (live_)
    draw(progress, now);
  else
    print_error(progress_line(progress, now) + "\n");
  last_ = std::move(state);
  drawn_at_ = now;
  shows_.no_later_than(now + (live_ ? kLiveClock : kPlainClock));
}

void Screen::on_task_end(const engine::TaskEnd& end) {
  answering_.drop(end.label);
  const bool well = end.state == store::TaskState::done || end.state == store::TaskState::stopped;
  // A task that is tried again keeps people waiting; other failures stand in the summary at the
  // end.
  if (well || (show_ != Show::all && !end.again)) return;
  print_line(fmt::format("{}/{} {}: {}{}{}", run_, end.label, end.again ? "tries again" : "failed",
                         engine::cause_text(end), end.detail.empty() ? "" : ": ", end.detail));
}

void Screen::on_output(const exec::Output& output) {
  if (show_ != Show::output) return;
  Sink& sink = output.stream == exec::Stream::out ? out_ : err_;
  sink.waiting += output.bytes;
  sink.push();
}

bool Screen::wants_output() {
  return out_.waiting.size() < kMostWaiting && err_.waiting.size() < kMostWaiting;
}

void Screen::on_driven() {
  while (!(out_.empty() && err_.empty()) && env_.stop_signals() == 0)
    if (!env_.loop().turn()) return;
}

void Screen::Sink::push() {
  // A pipe or terminal that polls writable takes at least so much without blocking.
  constexpr std::size_t kPiece = PIPE_BUF;
  while (!empty() && !closed && writable(fd)) {
    const auto put =
        ::write(fd, waiting.data() + written, std::min(kPiece, waiting.size() - written));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      note_failed_print(errno);
      closed = true;
    } else {
      written += static_cast<std::size_t>(put);
    }
  }
  if (closed || empty()) {
    waiting.clear();
    written = 0;
  }
  takes.watch(empty() ? -1 : fd, os::Poll::For::writing);
}

void Screen::on_question(const engine::Question& question) {
  std::string asked;
  for (const auto& metric : question.metrics) asked += (asked.empty() ? "" : " ") + metric;
  print_line(fmt::format("{0}/{1}: {2}\n  in {3}; type its {4}, or: berth tell {0}/{1} VALUE", run_,
                         question.label, question.command, question.directory, asked));
  answering_.add(question);
}

void Screen::on_note(const std::string& note) {
  print_line(fmt::format("{}: {}", run_, note));
}

}  // namespace berth::cli
