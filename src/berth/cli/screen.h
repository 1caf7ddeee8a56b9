// What a person sees while a run goes on: one live line on a terminal, plain lines elsewhere; a
// single command's output goes straight through. All on stderr but that output.
#pragma once

#include <optional>
#include <string>

#include "berth/run/runner.h"

namespace berth::cli {

class Screen final : public run::Observer {
 public:
  /// `through`: the run is one command, whose output is shown as it comes.
  Screen(std::string run, bool through, bool quiet);
  ~Screen() override;

  void on_progress(const run::Progress& progress, Mono now) override;
  void on_task_end(const run::TaskEnd& end) override;
  void on_output(const exec::Output& output) override;
  void on_note(const std::string& note) override;

 private:
  std::string line(const run::Progress& progress, Mono now) const;
  void say(const std::string& text);  // a line that stays
  void wipe();

  std::string run_;
  bool through_, quiet_, live_;
  bool drawn_ = false;
  std::optional<Mono> drawn_at_;
  std::optional<Mono> began_;
  std::string last_;
};

}  // namespace berth::cli
