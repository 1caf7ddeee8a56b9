// A study: a search for the parameters with the best score, whose trials the caller carries out. An
// ask claims a trial, a tell ends it; any number of processes on hosts that share the store may ask
// the same study, and every trial is given out once.
//
//   auto study = berth::Study::create(R"(
//       name: digits
//       passive: true
//       params: {lr: {min: 1e-4, max: 1e-1, scale: log}, width: [16, 32, 64]}
//       search: {method: tpe, samples: 40, seed: 7}
//       goal: {metric: accuracy, direction: max})");
//   for (;;) {
//     auto asked = study->ask();
//     if (!asked || asked->over) break;                 // no trial is left
//     if (asked->trial)
//       study->tell(*asked->trial, {{"accuracy", train(asked->trial->number("lr"))}});
//     else
//       std::this_thread::sleep_for(500ms);             // others have all that there are now
//   }
//   auto best = study->best();
//
// The document is an experiment's file (docs/reference/experiment-files.md) with `passive: true` in
// place of `run`. Durability: what a call returned from is recorded. Ownership: a Study gives back
// what it claimed and did not tell when it ends. Threads: a Study belongs to one thread at a time.
// Errors: invalid, with the document's line and key; stale, where a claim's lease ran out and
// another has the trial; those of the store. What a ResourceManager throws is caught where it is
// called, and is an error as if it had returned `invalid` with the exception's words.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/error.h"

namespace berth {

using Params = std::vector<std::pair<std::string, std::string>>;  ///< Values as text, in order.
using Metrics = std::vector<std::pair<std::string, double>>;

struct Trial {
  std::string label;  ///< "17"; "17@9" where the budget of trial 17 is 9.
  Params params;
  std::string state;       ///< "waiting", "running", "done" or "failed".
  Metrics metrics;         ///< The last value of each.
  std::int64_t token = 0;  ///< Of the claim; it is told along.

  /// The value of a parameter; "" or NaN where the trial has none, or none that is a number.
  BERTH_EXPORT std::string_view text(std::string_view param) const;
  BERTH_EXPORT double number(std::string_view param) const;
};

/// A trial; or that there is none now, because all are claimed, or none any more.
struct Asked {
  std::optional<Trial> trial;
  bool over = false;
  std::string why{};
};

struct StudyOptions {
  std::string state_directory{};  ///< "": where `berth` has its runs (BERTH_DB, XDG_STATE_HOME).
  bool in_memory = false;         ///< Nothing is kept; of this process alone.
};

class BERTH_EXPORT Study {
 public:
  static Result<Study> create(std::string_view document, const StudyOptions& options = {});
  /// One that was begun before, by its name ("digits-3"). not_found. A study in memory is not.
  static Result<Study> open(const std::string& name, const StudyOptions& options = {});
  Study(Study&&) noexcept;
  Study& operator=(Study&&) noexcept;
  ~Study();

  const std::string& name() const;  ///< "digits-3".

  Result<Asked> ask();
  /// Ends a trial as done, with the metric of every goal. invalid: a goal has no value. A value
  /// that is not finite is recorded as missing; a trial whose goal has such a value has failed.
  Status tell(const Trial& trial, const Metrics& metrics);
  /// Ends it as failed. With a retry left it waits again.
  Status fail(const Trial& trial, const std::string& reason);
  /// Ends it as stopped early, with what it reported.
  Status prune(const Trial& trial, const std::string& reason);
  /// Records metrics of a running trial, and says why it should end early, if it should.
  Result<std::optional<std::string>> report(const Trial& trial, const Metrics& metrics);

  /// A proposer of one's own: adds a trial with these values, which is asked for before any that
  /// the search proposes; what it lacks is drawn at random. invalid: the space has no such values.
  Result<Trial> enqueue(const Params& params);
  /// How many trials the search makes from now on.
  Status set_samples(std::int64_t samples);

  /// All trials so far, with what others have told, and the best by the first goal.
  Result<std::vector<Trial>> trials();
  Result<std::optional<Trial>> best();

  /// A claim lives for the document's `lease` (30s) unless renewed. Renews all claims of this
  /// Study; within renew_within() it has to be called again. nullopt: nothing is claimed.
  Status renew();
  std::optional<std::chrono::milliseconds> renew_within() const;

 private:
  struct State;
  explicit Study(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What came of a trial: its metrics, or why it failed.
struct TrialOutcome {
  Metrics metrics{};
  std::string failure{};  ///< "": it is done.
};

/// By which a manager tells of one trial: from any thread, and also within run(). It may be copied,
/// and outlive all else; a trial whose reporters are all gone without finished() has failed.
class BERTH_EXPORT TrialReporter {
 public:
  /// Metrics so far. Early stopping goes by them, and a trial that is stopped early is done with
  /// them.
  void report(const Metrics& metrics) const;
  /// Whether the trial should end: its score does not warrant more, or it was given to others.
  bool should_stop() const;
  /// Once; what comes then is passed over.
  void finished(const TrialOutcome& outcome) const;

  struct State;
  explicit TrialReporter(std::shared_ptr<State> state);

 private:
  std::shared_ptr<State> state_;
};

/// Where trials run: a resource manager of one's own. carry_out() calls it on its own thread.
class BERTH_EXPORT ResourceManager {
 public:
  virtual ~ResourceManager();
  /// Takes a resource for one more trial and names it ("gpu-0", a host); nullopt: none is free now.
  /// Where it throws no more trials begin, and carry_out() ends with that once those that run have.
  virtual std::optional<std::string> acquire() = 0;
  /// Starts the trial there and returns. An error is the trial's failure.
  virtual Status run(const Trial& trial, const std::string& resource, TrialReporter reporter) = 0;
  /// The trial should end, and why; what reporter.finished() then says is its end.
  virtual void stop(const Trial& /*trial*/, const std::string& /*why*/) {}
  /// The trial has ended, and its end is recorded.
  virtual void release(const std::string& resource) = 0;
};

/// Runs the study to its end, as many trials side by side as there are resources, and keeps their
/// leases. Waits for trials that run also where it fails. Returns the best trial.
BERTH_EXPORT Result<std::optional<Trial>> carry_out(Study& study, ResourceManager& manager);

/// The names of the search methods: "grid", "random", "tpe", "gp", "cma-es", …
BERTH_EXPORT std::vector<std::string_view> search_methods();

}  // namespace berth
