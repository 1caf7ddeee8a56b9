// What a person sees while a run goes on: a live line on a terminal, of a flow one for each step,
// and plain lines elsewhere; a
// single command's output goes straight through. All on stderr but that output.
#pragma once

#include <optional>
#include <string>

#include "berth/cli/answering.h"
#include "berth/run/runner.h"

namespace berth::cli {

class Screen final : public run::Observer {
 public:
  /// `through`: the run is one command, whose output is shown as it comes.
  Screen(os::Env& env, std::string run, bool through, bool quiet);
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
  void draw(const run::Progress& progress, Mono now);
  std::string to_the_top() const;
  void wipe();

  os::Env& env_;
  std::string run_;
  Sink out_, err_;
  bool through_, quiet_, live_;
  std::size_t drawn_ = 0;  // live lines that stand there
  std::optional<Mono> drawn_at_;
  std::optional<Mono> began_;
  Answering answering_;
  std::string last_;
  std::string last_word_;  // where lines stay: how it ended, once nothing more can come
};

}  // namespace berth::cli
