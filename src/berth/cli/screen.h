// What a person sees while a run goes on: a live line on a terminal, of a flow one for each step,
// and plain lines elsewhere; a
// single command's output goes straight through. All on stderr but that output.
#pragma once

#include <optional>
#include <string>

#include "berth/cli/answering.h"
#include "berth/run/runner.h"

namespace berth::cli {

enum class Show : std::uint8_t {
  all,      // progress and notes
  output,   // of a run of one command: its output as it comes, and notes
  notes,    // what a person has to know while it goes on
  nothing,  // for commands that end a run
};

class Screen final : public run::Observer {
 public:
  Screen(os::Env& env, std::string run, Show show);
  ~Screen() override;

  void on_progress(const run::Progress& progress, Mono now) override;
  void on_task_end(const run::TaskEnd& end) override;
  void on_output(const exec::Output& output) override;
  void on_note(const std::string& note) override;
  void on_question(const run::Question& question) override;
  bool wants_output() override;
  void watch(std::vector<os::Watch>& watches) override;
  void flush() override;
  /// Shows the rest, for as long as somebody reads and nobody asked to stop.
  void finish();

 private:
  /// Output on its way to standard output or error: written only where it does not block.
  struct Sink {
    int fd = -1;
    std::string waiting{};
    std::size_t written = 0;  // of `waiting`
    bool closed = false;
    void push();
    bool empty() const { return written == waiting.size(); }
  };

  std::string line(const run::Progress& progress, Mono now) const;
  void say(const std::string& text);  // a line that stays
  void tell_wait(const run::Progress& progress, Mono now);
  void draw(const run::Progress& progress, Mono now);
  std::string to_the_top() const;
  void wipe();

  os::Env& env_;
  std::string run_;
  Sink out_, err_;
  Show show_;
  bool live_;
  std::size_t drawn_ = 0;  // live lines that stand there
  std::optional<Mono> drawn_at_;
  Answering answering_;
  std::string last_;
  std::string waits_for_, told_wait_;  // why it waits; the reason that was told last
  Mono waits_since_{};
  std::string last_word_;  // where lines stay: how it ended, once nothing more can come
};

}  // namespace berth::cli
