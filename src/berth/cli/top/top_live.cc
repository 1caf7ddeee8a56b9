#include "berth/cli/top/top_live.h"

#include <algorithm>
#include <memory>

#include "berth/base/text.h"
#include "berth/cli/top/own_child.h"
#include "berth/cli/top/top_page.h"
#include "berth/os/terminal.h"
#include "berth/render/cells.h"

namespace berth::cli {
namespace {

constexpr Duration kEvery = std::chrono::seconds(1);
/// So long behind an Esc the rest of a sequence may come, over a slow line too.
constexpr Duration kSequenceWithin = std::chrono::milliseconds(100);
constexpr std::size_t kMostLogLines = 10'000, kMostLineBytes = 64 << 10;
constexpr Duration kStopsWithin = std::chrono::seconds(10);  // once somebody quits
constexpr const char* kLogTail = "1M";                       // of what there is already

/// Lines as a terminal would leave them: what stands behind a carriage return replaces what stood
/// before it, and tabs go on to the next eighth cell.
class LogLines {
 public:
  explicit LogLines(TextPane& pane) : pane_(pane) { pane_ = {{""}, 0}; }

  void add(std::string_view text) {
    for (const char c : text) {
      if (c == '\n')
        end_line();
      else if (open_.size() < kMostLineBytes)
        open_ += c;
    }
    pane_.lines.back() = shown();
  }

 private:
  void end_line() {
    pane_.lines.back() = shown();
    pane_.lines.emplace_back();
    open_.clear();
    if (pane_.lines.size() <= kMostLogLines) return;
    pane_.lines.pop_front();
    ++pane_.dropped;
  }
  std::string shown() const {
    std::string_view line = open_;
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (const auto at = line.rfind('\r'); at != std::string_view::npos) line.remove_prefix(at + 1);
    std::string text;
    for (const auto part : split(line, '\t')) {
      if (part.data() != line.data()) text += std::string(8 - render::cells(text) % 8, ' ');
      text += render::one_line(part);
    }
    return text;
  }
  TextPane& pane_;
  std::string open_;  // the line that has not ended
};

class Live {
 public:
  Live(os::Env& env, TopSource source, os::Terminal& terminal)
      : env_(env),
        source_(std::move(source)),
        terminal_(terminal),
        is_plain_(env.variable("NO_COLOR").value_or("") != "") {}

  Result<int> run() {
    input_.watch(terminal_.input());
    changes_.watch(terminal_.changes());
    refresh();
    while (!quits_ && env_.stop_signals() == 0) {
      draw();
      BERTH_TRY(env_.loop().turn());
    }
    BERTH_TRY(finish_stops());
    return 0;
  }

 private:
  void refresh() {
    source_.refresh(data_, state_);
    tick_.set(env_.now() + kEvery);
  }

  void on_input() {
    const auto typed = terminal_.read();
    if (!typed) {
      quits_ = true;
      return;
    }
    press_all(keys_(*typed));
    sequence_.set(keys_.is_open() ? std::optional(env_.now() + kSequenceWithin) : std::nullopt);
  }

  void press_all(const std::vector<KeyPress>& keys) {
    for (const auto& key : keys) act(press(state_, data_, key, terminal_.size()));
  }

  void act(const TopRequest& request) {
    const auto shows = state_.shows_all;
    switch (request.kind) {
      case TopRequest::Kind::none: break;
      case TopRequest::Kind::quit: quits_ = true; break;
      case TopRequest::Kind::stop: stop(request.of); break;
      case TopRequest::Kind::show_log: show_log(request.of); break;
      case TopRequest::Kind::leave_log: log_.reset(); break;
      case TopRequest::Kind::redraw: drawn_.clear(); break;
    }
    // What was not read yet may be asked for now.
    if (shows != shown_all_ || state_.open != shown_open_) refresh();
    shown_all_ = shows;
    shown_open_ = state_.open;
  }

  struct Stop {
    std::string said = {};
    bool is_over = false;
    std::unique_ptr<os::ChildProcess> command = {};
  };

  void stop(const std::string& run) {
    state_.note = "stopping " + run;
    std::erase_if(stops_, [](const auto& stop) { return stop->is_over; });
    auto& stop = *stops_.emplace_back(std::make_unique<Stop>());
    stop.command = start_own_command(
        env_, {"stop", run},
        [&stop](std::string_view text) {
          if (stop.said.size() < kMostLineBytes) stop.said += text;
        },
        [this, &stop] {
          stop.is_over = true;
          state_.note = trim(stop.said);
          refresh();
        });
  }

  /// Who stops a run and quits wants it stopped.
  Status finish_stops() {
    const Mono until = env_.now() + kStopsWithin;
    const auto is_over = [](const auto& stop) { return stop->is_over; };
    while (!std::ranges::all_of(stops_, is_over) && env_.now() < until && env_.stop_signals() == 0)
      BERTH_TRY(env_.loop().turn(until));
    return {};
  }

  void show_log(const std::string& of) {
    lines_.emplace(data_.log);
    log_ = start_own_command(
        env_, {"logs", "--together", "--follow", "--tail", kLogTail, of},
        [this](std::string_view text) { lines_->add(text); },
        [this] { lines_->add("\n(end of the log)"); });
  }

  void draw() {
    const auto size = terminal_.size();
    settle(state_, data_, size);
    // What is on its way has to be there before more is sent.
    if (terminal_.is_flushed()) {
      auto page = page_of(data_, state_, size, is_plain_);
      terminal_.write(drawing(drawn_, page));
      drawn_ = std::move(page);
    }
    output_.watch(terminal_.is_flushed() ? -1 : terminal_.output(), os::Poll::For::writing);
  }

  void on_changes() {
    if (terminal_.take_changes()) drawn_.clear();
  }

  os::Env& env_;
  TopSource source_;
  os::Terminal& terminal_;
  const bool is_plain_;
  bool quits_ = false, shown_all_ = false;
  std::set<std::string> shown_open_;
  TopData data_;
  TopState state_;
  Keys keys_;
  std::vector<std::string> drawn_;  // rows of the screen; none: unknown
  std::optional<LogLines> lines_;
  std::vector<std::unique_ptr<Stop>> stops_;
  std::unique_ptr<os::ChildProcess> log_;
  os::Poll input_{env_.loop(), [this] { on_input(); }};
  os::Poll changes_{env_.loop(), [this] { on_changes(); }};
  os::Poll output_{env_.loop(), [this] { terminal_.flush(); }};
  os::Timer tick_{env_.loop(), [this] { refresh(); }};
  os::Timer sequence_{env_.loop(), [this] { press_all(keys_.end()); }};
};

}  // namespace

Result<int> top_live(os::Env& env) {
  os::install_stop_signals();
  // Asking the drivers may take seconds, in which nothing should be on the screen.
  BERTH_ASSIGN(auto source, TopSource::open(env));
  BERTH_ASSIGN(const auto terminal, os::Terminal::open(env));
  return Live(env, std::move(source), *terminal).run();
}

}  // namespace berth::cli
