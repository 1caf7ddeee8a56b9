// What a person sees while a run goes on: live lines on a terminal, of a flow one for each step,
// and plain lines elsewhere. The output of a single command goes straight through. All of it is
// written to standard error but that output.
#pragma once

#include <optional>
#include <string>

#include "berth/cli/answering.h"
#include "berth/engine/runs/drive.h"
#include "berth/os/loop.h"

namespace berth::cli {

enum class Show : std::uint8_t {
  all,      ///< Progress and notes.
  output,   ///< For a run of one command: its output as it comes, and notes.
  notes,    ///< What a person has to know while the run goes on.
  nothing,  ///< For commands that end a run.
};

class Screen final : public engine::Observer {
 public:
  Screen(os::Env& env, std::string run, Show show);
  ~Screen() override;

  void on_progress(const engine::Progress& progress, Mono now) override;
  void on_task_end(const engine::TaskEnd& end) override;
  void on_output(const exec::Output& output) override;
  void on_note(const std::string& note) override;
  void on_question(const engine::Question& question) override;
  bool wants_output() override;
  /// Writes the remaining output, until the reader has gone or a stop signal arrives.
  void on_driven() override;

 private:
  /// Output on its way to standard output or error. It is written only where that does not block.
  struct Sink {
    Sink(os::Env& env, int number) : fd(number), takes(env.loop(), [this] { push(); }) {}
    void push();
    bool empty() const { return written == waiting.size(); }
    const int fd;
    std::string waiting{};
    std::size_t written = 0;  // of `waiting`
    bool closed = false;
    os::Poll takes;
  };

  std::string state_text(const engine::Progress& progress) const;
  std::string progress_line(const engine::Progress& progress, Mono now) const;
  void print_line(const std::string& text);  // above the live lines, where it stays
  void report_wait(const engine::Progress& progress, Mono now);
  void draw(const engine::Progress& progress, Mono now);
  std::string cursor_to_top() const;
  void erase();

  os::Env& env_;
  std::string run_;
  Sink out_, err_;
  Show show_;
  bool live_;              // live lines are drawn
  std::size_t drawn_ = 0;  // live lines on the terminal now
  std::optional<Mono> drawn_at_;
  os::Timer shows_;  // wakes the loop, whose turn brings the progress again
  Answering answering_;
  std::string last_;                       // state_text() of the line that was printed last
  std::string waits_for_, reported_wait_;  // why the run waits; the reason that was printed last
  Mono waits_since_{};
  std::string final_line_;  // where no live lines are drawn: how it ended, once nothing can follow
};

}  // namespace berth::cli
