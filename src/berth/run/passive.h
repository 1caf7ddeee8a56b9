// Trials that somebody else carries out: Berth shows the command and waits for what came of it.
//
// What is told of a trial stands in ANSWERS/NUMBER, in the words in which the trial itself would
// have printed it, until its end is recorded: it outlives whoever drives the run, and a resume
// finds it there. It is left by the person at the terminal, by `berth tell`, or by a program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/exec/workplace.h"
#include "berth/experiment/program.h"
#include "berth/os/loop.h"
#include "berth/run/runner.h"

namespace berth::run {

/// What was told, in words that an answer is kept in: "0.93", "0.93 12" (of the goals in their
/// order, also with commas), "accuracy=0.93 loss=2", "failed" with or without a reason.
/// invalid: anything else, or the first goal is missing.
Result<std::string> read_answer(std::string_view told, const std::vector<std::string>& goals);
/// Durable on return. `text`: as read_answer() gave it.
Status leave_answer(os::Env& env, const std::string& directory, TaskNumber task,
                    std::string_view text);
/// The tasks whose answers are there.
std::vector<TaskNumber> answered(os::Env& env, const std::string& directory);
/// The metrics that are asked for of each trial: those of its goals.
std::vector<std::string> asked_of(const experiment::Program& program);

/// What a person is asked who carries the trial out: its command, as one would type it, or its
/// parameters where it has none. `metrics`: those that the answer has.
Question question_of(os::Env& env, const std::string& run_directory, const store::TaskRecord& task,
                     const exec::Launch& launch, const std::vector<std::string>& metrics);

class Passive final : public exec::Workplace {
 public:
  using Ask = std::function<void(const exec::Launch& launch)>;
  /// `ask` shows the trial to whoever is there.
  Passive(os::Env& env, std::string directory, Ask ask)
      : env_(env), directory_(std::move(directory)), ask_(std::move(ask)) {}

  void tell(const exec::ToWorker& message) override;
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
  std::vector<TaskNumber> taken_;  // whose answers go once what they said is durable
  std::vector<exec::FromWorker> pending_;
  Mono lively_until_{};  // something has just happened: more may follow soon
  os::Timer looks_{env_.loop(), [this] { look_at_all(); }};
};

}  // namespace berth::run
