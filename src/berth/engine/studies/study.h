// A study that a program uses through requests in JSON (docs/reference/python.md): each request is
// one line, each answer a struct. The program evaluates the trials itself.
//
// Ownership: the Context outlives the session. Answers refer to the session and are valid until its
// next call. Threads: one. Errors: those of run/studies/study.h; usage for a request that is
// malformed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/engine/context.h"
#include "berth/engine/queries/shown_run.h"
#include "berth/experiment/program.h"

namespace berth::engine {

/// The answer to `create` and `open`.
struct OpenedStudy {
  std::string name;
  std::vector<experiment::Goal> goals;
};
/// One trial of a study; the answer to `best` (without a task if none has a score) and `enqueue`.
struct StudyTrial {
  const store::RunRecord* run = nullptr;
  const experiment::Program* program = nullptr;
  const store::TaskRecord* task = nullptr;
};
/// The answer to `ask`: a trial with the token of its claim.
struct ClaimedTrial {
  StudyTrial trial;
  Token token;
};
/// The answer to `ask` if there is no trial now, or (`is_over`) none any more.
struct NoTrial {
  std::string why;
  bool is_over = false;
  std::vector<std::string> own = {};  ///< Labels of trials of this session that it depends on.
};
/// The answer to `report`: why the trial should end early, if it should.
struct PruneAdvice {
  std::optional<std::string> because;
};
/// The answer to `suggest`: values of parameters.
struct SuggestedValues {
  experiment::Values values;
  const experiment::ValueTypes* types = nullptr;
};
/// The answer to `show`.
struct StudyReport {
  ShownRun run;
  const std::vector<store::TaskRecord>* trials = nullptr;
};
/// `std::monostate`: the request is recorded.
using StudyAnswer = std::variant<std::monostate, OpenedStudy, StudyTrial, ClaimedTrial, NoTrial,
                                 PruneAdvice, SuggestedValues, StudyReport>;

class StudySession {
 public:
  explicit StudySession(Context& context);
  StudySession(const StudySession&) = delete;
  StudySession& operator=(const StudySession&) = delete;
  ~StudySession();

  Result<StudyAnswer> answer(std::string_view request);
  /// When to call renew(), which renews the leases of the claimed trials; nullopt: none is claimed.
  std::optional<Mono> renew_at() const;
  Status renew();
  /// Returns the claimed trials that have no result.
  Status end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::engine
