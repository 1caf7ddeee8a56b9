// A PassiveWorker has somebody else run the tasks: it shows each command and waits until it is told
// the result.
//
// The answer about a trial stands in ANSWERS/NUMBER until its end is recorded, in the words in
// which the trial itself would have printed it. It outlives the runner, so a resume finds it there.
// The person at the terminal leaves it, or `berth tell`, or a program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/exec/worker.h"
#include "berth/experiment/program.h"
#include "berth/os/loop.h"
#include "berth/run/drive/runner.h"

namespace berth::run {

/// Turns what a person wrote into the words in which an answer is kept. It may be "0.93", "0.93 12"
/// (for the goals in their order, also with commas), "accuracy=0.93 loss=2", or "failed" with or
/// without a reason. Failure: invalid, for anything else and where the first goal is missing.
Result<std::string> read_answer(std::string_view told, const std::vector<std::string>& goals);
/// Keeps an answer, durably; `text` is what read_answer() returned.
Status leave_answer(os::Env& env, const std::string& directory, TaskNumber task,
                    std::string_view text);
/// The tasks that have an answer.
std::vector<TaskNumber> answered(os::Env& env, const std::string& directory);
/// The metrics that a person is asked for after each trial: those of its goals and constraints, and
/// then those that have a label.
std::vector<std::string> asked_of(const experiment::Program& program);

/// The question to a person who carries the trial out. It shows the command as one would type it,
/// or the parameters where there is no command, and asks for `metrics`.
Question question_of(os::Env& env, const std::string& run_directory, const store::TaskRecord& task,
                     const exec::Launch& launch, const std::vector<std::string>& metrics);

class PassiveWorker final : public exec::Worker {
 public:
  using Ask = std::function<void(const exec::Launch& launch)>;
  /// The worker calls `ask` to show a trial to whoever is there.
  PassiveWorker(os::Env& env, std::string directory, Ask ask)
      : env_(env), directory_(std::move(directory)), ask_(std::move(ask)) {}

  void send(const exec::ToWorker& message) override;
  void set_reading(bool) override {}
  void take_messages(std::vector<exec::FromWorker>& messages) override;
  bool idle() const override { return open_.empty() && pending_.empty(); }
  void acknowledge() override;

 private:
  struct Open {
    TaskNumber task;
    Token token;
    std::optional<Mono> limit;
  };
  void look_at_all();
  void look(const Open& open, Mono now);
  void end(const Open& open, exec::Cause cause, std::string detail);

  os::Env& env_;
  std::string directory_;
  Ask ask_;
  std::vector<Open> open_;
  std::vector<TaskNumber> read_;   // whose answers go with the next messages
  std::vector<TaskNumber> taken_;  // whose answers are removed once their ends are durable
  std::vector<exec::FromWorker> pending_;
  Mono lively_until_{};  // until then it looks more often, for an answer has just come
  os::Timer looks_{env_.loop(), [this] { look_at_all(); }};
};

}  // namespace berth::run
