// A study: a search whose trials are carried out by whoever asks for them, in any number of
// processes on any machines that share the store. There is no runner. An ask is a claim: it takes a
// trial that waits, or adds the next one, and starts an attempt of it with a lease, which whoever
// asked renews while it lives. A claim whose lease has run out is given to the next who asks, under
// a greater token, and what its former holder tells from then on is refused: a trial has one end.
//
// No two claims meet: each is one batch of the store, whose token must be greater than any before.
// Who comes second is refused as stale, hears the news, and tries again; so somebody gets on.
// Proposals are made with everything that is recorded when the ask begins.
//
// A lease is a number that its holder increases. It has run out when it stayed the same for the
// length of the lease, by the boot clock of the process that watches (lease_watch.h). Wall clocks
// decide nothing, for they may be set, and differ between machines.
//
// Ownership: the store and the Env outlive it. Threads: one. Failure: errors of the store; others
// are named. After an error a Study may go on: it hears what is recorded with its next call.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <variant>

#include "berth/experiment/proposers/proposer.h"
#include "berth/experiment/stopping/early_stop.h"
#include "berth/os/env.h"
#include "berth/run/studies/lease_watch.h"
#include "berth/store/store.h"

namespace berth::run {

inline constexpr std::string_view kStudy = "study";  ///< The kind of its run.
/// How often a trial may be lost with whoever carried it out before it counts as failed.
inline constexpr std::int64_t kMostLost = 5;

/// What came of a trial.
struct TrialEnd {
  enum class Kind : std::uint8_t { done, pruned, failed };
  static constexpr auto kKindNames =
      names<Kind>({{Kind::done, "done"}, {Kind::pruned, "pruned"}, {Kind::failed, "failed"}});
  Kind kind = Kind::done;
  store::Numbers metrics{};  ///< With those of all goals where it is done.
  std::string reason{};
};

class Study {
 public:
  /// Records a new one, which `program` describes, and returns its run. Its trials come from its
  /// search one by one. invalid: the search is external.
  static Result<store::RunRecord> submit(store::Store& store, os::Env& env,
                                         experiment::Program program, const std::string& directory);
  /// Opens one. One that was stopped goes on. What its processes see of each other's leases is kept
  /// in the run's directory below `runs`; with "" each process watches alone. Errors: not_found;
  /// usage, where the run is not a study.
  static Result<Study> open(store::Store& store, os::Env& env, const std::string& name,
                            const std::string& runs = "");
  Study(Study&&) = default;

  struct Later {
    std::string why;
    /// The labels of the trials that it depends on, if this Study has claimed all of them.
    std::vector<std::string> own{};
  };
  struct Over {
    std::string why;
  };
  /// The trial that was claimed; or that there is none now, or none any more.
  using Asked = std::variant<TaskNumber, Later, Over>;
  Result<Asked> ask();

  /// Records the end of a trial, durably. With a retry left, a failed one waits again. Without a
  /// token the trial may be claimed by any process, or by none. A value that is not finite is
  /// recorded as missing, and the reason says so; a trial whose goal has such a value has failed.
  /// invalid: it has ended already, or a goal has no value; stale: its claim with this token is not
  /// the latest; not_found: no such trial.
  Status tell(const std::string& label, std::optional<Token> token, const TrialEnd& end);
  /// Returns a trial that this Study has claimed: the next ask() may give it out again. stale: as
  /// tell().
  Status release(const std::string& label, std::optional<Token> token);
  /// Records metrics of a running trial. Returns why it should end early, if it should: once it is
  /// told so it is told so again. Errors: as tell().
  Result<std::optional<std::string>> report(const std::string& label, std::optional<Token> token,
                                            const store::Numbers& metrics);

  /// The trial's value of the parameter. Where the space lacks the parameter, it is added to it and
  /// this trial's value is drawn at random; later trials propose it. Parameters that were added so
  /// and that a trial did not ask for are not recorded with it. invalid: the space has the
  /// parameter otherwise, or the trial has a value outside it; stale: as tell().
  Result<std::string> suggest(const std::string& label, const experiment::Parameter& parameter,
                              const experiment::ValueTypes& types = {});

  /// Adds a trial with these values, which is asked for before any that nobody has proposed yet;
  /// what it lacks is proposed. Returns its number. invalid: the space has no such values. `types`
  /// are those of values whose parameters the space does not have yet.
  Result<TaskNumber> enqueue(store::Values given, const experiment::ValueTypes& types = {});
  /// The point with each value as the space writes it. invalid: as enqueue().
  Result<store::Values> check_point(store::Values given) const;
  /// How many trials the search makes from now on. usage: its method takes every point.
  Status set_samples(std::int64_t samples);

  /// Renews the leases of what this Study has claimed; it has to be called by renew_at().
  Status renew();
  /// nullopt: it holds nothing.
  std::optional<Mono> renew_at() const;
  /// Gives back what was claimed and not told.
  Status give_back();
  /// Hears what others have done.
  Status refresh();

  const store::RunRecord& record() const { return run_; }
  const experiment::Program& program() const { return program_; }
  const std::vector<store::TaskRecord>& trials() const { return trials_; }
  const store::TaskRecord& trial(TaskNumber number) const {
    return trials_.at(static_cast<std::size_t>(number.value - 1));
  }
  Result<TaskNumber> find(const std::string& label);
  /// The best trial by the first goal; nullptr: none has a score.
  const store::TaskRecord* best() const;

 private:
  Study(store::Store& store, os::Env& env, store::RunRecord run, experiment::Program program,
        LeaseWatch watch);

  // What is known of the run.
  Status reload();
  void take(store::TaskRecord trial);
  Result<bool> reread_program();
  Status settle();
  bool mine(const store::TaskRecord& trial) const;
  bool ran_out(const store::TaskRecord& trial);
  bool overdue(const store::TaskRecord& trial);
  std::int64_t next_lease(std::int64_t before) const;
  std::optional<std::string> closed() const;

  // Steps of ask() and tell().
  struct Pick {
    std::optional<TaskNumber> trial{};  // that is claimed; none: `added` is
    std::optional<experiment::Proposal> added{};
    std::optional<Asked> none{};  // neither
  };
  Result<Pick> pick();
  Result<bool> end_hopeless(const store::TaskRecord& trial);
  Result<bool> claim(const Pick& pick);
  Result<Token> token_of(const store::TaskRecord& trial, std::optional<Token> token,
                         std::vector<store::Change>& changes);
  Status check(const TrialEnd& end) const;
  TrialEnd with_notes(TaskNumber number, TrialEnd end);
  void note_missing(TaskNumber number, const store::Numbers& metrics);
  void add_metrics(const store::TaskRecord& trial, Token token, const store::Numbers& metrics,
                   std::vector<store::Change>& changes) const;
  Result<store::AttemptEnded> change_of(const store::TaskRecord& trial, Token token,
                                        const TrialEnd& end);
  Result<bool> has_retries(const store::TaskRecord& trial);
  void forget_unsuggested(const store::TaskRecord& trial, Token token,
                          std::vector<store::Change>& changes);

  // The search.
  void begin_search();
  void tell_proposer(const store::TaskRecord& trial);
  const std::optional<experiment::Proposal>& proposal();
  std::optional<experiment::Proposal> next_point();
  bool may_grow() const;
  bool was_added(const experiment::Parameter& parameter) const;
  Result<const experiment::Parameter*> known(const experiment::Parameter& parameter,
                                             const experiment::ValueTypes& types = {});
  Status note_types(const store::Values& given, const experiment::ValueTypes& types);
  Status feed_stopper();
  Status feed_stopper(TaskNumber number);

  store::Store& store_;
  os::Env& env_;
  store::RunRecord run_;
  experiment::Program program_;
  std::vector<store::TaskRecord> trials_;  // by number
  std::unordered_map<std::string, TaskNumber> numbers_;
  std::set<TaskNumber> open_;  // trials that may change
  Token last_token_;
  std::map<TaskNumber, Token> claims_;  // of this Study
  Mono renewed_{};
  LeaseWatch watch_;

  std::unique_ptr<experiment::Proposer> proposer_;
  std::vector<experiment::Values> points_;  // of a search that knows them beforehand, or the first
  std::size_t next_point_ = 0, counted_ = 0;          // of points_; the trials that tried_ knows
  std::map<experiment::Values, std::int64_t> tried_;  // of the points from next_point_ on
  std::optional<std::optional<experiment::Proposal>> proposal_;  // the next; none: not asked for
  std::map<TaskNumber, std::set<std::string>> suggested_;        // of claims: the names asked for
  std::map<TaskNumber, std::string> missing_;  // of claims: a note of the first value not finite

  std::optional<experiment::EarlyStopper> stopper_;
  struct Fed {
    Token token;
    std::int64_t sequence = 0;
    std::optional<std::string> because{};
  };
  std::map<TaskNumber, Fed> fed_;
  std::set<TaskNumber> unfed_;  // trials whose end the stopper has not heard
};

}  // namespace berth::run
