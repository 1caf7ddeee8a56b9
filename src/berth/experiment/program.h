// The program of a run: one command, executed with many parameter values or, without parameters,
// once. It is read from a person's file or made from a command line, and is stored as JSON with the
// run, so that a resume needs nothing else. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/exec/command.h"
#include "berth/exec/labels.h"
#include "berth/exec/messages.h"
#include "berth/exec/notify.h"
#include "berth/resource/resources.h"

namespace berth::experiment {

using Values = std::vector<std::pair<std::string, std::string>>;  // name, value as text
using Numbers = std::vector<std::pair<std::string, double>>;      // name, value

/// The types of values whose text does not show the type. A text that reads as a number, `true` or
/// `false` is one unless it is listed here; any other text is text.
struct ValueTypes {
  using NamedValues = std::set<std::pair<std::string, std::string>>;  // name, value
  std::set<std::string, std::less<>> floats{};  // parameters whose values are floats: 10 is 10.0
  NamedValues texts{};                          // text although it reads as something else
  NamedValues json{};                           // the JSON of a null, a list or a map
};

/// A condition on an earlier parameter, without which a later one is absent.
struct Condition {
  std::string parameter;
  std::vector<std::string> values;  // any of these
};

/// One dimension of the search space: choices, or a range. A fixed value is a single choice.
struct Parameter {
  enum class Scale : std::uint8_t { linear, log };
  static constexpr auto kScaleNames =
      names<Scale>({{Scale::linear, "linear"}, {Scale::log, "log"}});
  std::string name;
  std::vector<std::string> choices;  // empty: a range
  double min = 0, max = 0;
  Scale scale = Scale::linear;
  bool integer = false;
  double step = 0;                   // of a linear range, which ends on a step; 0: none
  std::int64_t points = 0;           // of the grid; 0: each integer or step, or not given
  std::vector<Condition> when = {};  // unless all hold, a trial does not have it
};

/// The budget of a trial (epochs, say), which is the last of its parameters but for its parent's
/// label (population.h). Its levels rise to `max` from `min` by the factor of the reduction, or by
/// as much each time.
struct Budget {
  std::string parameter;
  double min = 1, max = 1;
  std::int64_t reduction = 3;  // one of this many goes on, with this many times the budget
  bool whole = true;           // between whole amounts there are only whole ones (epochs)
  double every = 0;            // of pbt: the levels are its multiples, and max; 0: see reduction
  bool whole_groups = false;   // hyperband: each bracket has a multiple of reduction^rungs trials,
                               // as in HpBandSter
};

struct Search {
  enum class Method : std::uint8_t {
    grid,
    random,
    sequence,
    sobol,
    tpe,
    cma_es,
    gp,
    automatic,
    halving,
    hyperband,
    external,
    nsga2,
    pbt,
  };
  static constexpr auto kMethodNames = names<Method>({
      {Method::grid, "grid"},
      {Method::random, "random"},
      {Method::sequence, "sequence"},
      {Method::sobol, "sobol"},
      {Method::tpe, "tpe"},
      {Method::cma_es, "cma-es"},
      {Method::gp, "gp"},
      {Method::automatic, "auto"},
      {Method::halving, "halving"},
      {Method::hyperband, "hyperband"},
      {Method::external, "external"},
      {Method::nsga2, "nsga2"},
      {Method::pbt, "pbt"},
  });
  Method method = Method::grid;
  std::int64_t samples = 0;  // the number of trials of methods that draw points
  std::uint64_t seed = 0;
  std::vector<Values> points{};        // of sequence
  std::string file{};                  // the file with the points; the caller reads it
  std::optional<Budget> budget{};      // of halving, hyperband and pbt
  bool model = false;                  // halving and hyperband propose as tpe does
  std::vector<std::string> explore{};  // of pbt: the parameters that a copy changes
  exec::Command proposer{};            // of external: the program that proposes
  Duration answer_timeout{};           // of external: how long an answer may take
};

struct Goal {
  enum class Score : std::uint8_t { last, best };
  static constexpr auto kScoreNames = names<Score>({{Score::last, "last"}, {Score::best, "best"}});
  std::string metric;
  bool maximize = true;
  Score score = Score::last;  // of what a trial reports
};

/// What the metric of a trial has to keep (constraint.h).
struct Constraint {
  enum class Relation : std::uint8_t { at_most, below, at_least, above };
  static constexpr auto kRelationNames = names<Relation>({{Relation::at_most, "<="},
                                                          {Relation::below, "<"},
                                                          {Relation::at_least, ">="},
                                                          {Relation::above, ">"}});
  std::string metric;
  Relation relation = Relation::at_most;
  double bound = 0;
};

/// The name of the score among a trial's metrics, and its value.
std::string score_name(const Goal& goal);
std::optional<double> score(const Goal& goal, const Numbers& metrics);
/// The new score if Goal::Score::best applies and `reported` is better than all before; nullopt: it
/// is not.
std::optional<double> better_score(const Goal& goal, const Numbers& metrics, double reported);

/// When a running trial is stopped early. Steps are reports of the goal's metric.
struct EarlyStop {
  enum class Policy : std::uint8_t { median, bandit, truncation, curve };
  static constexpr auto kPolicyNames = names<Policy>({{Policy::median, "median"},
                                                      {Policy::bandit, "bandit"},
                                                      {Policy::truncation, "truncation"},
                                                      {Policy::curve, "curve"}});
  Policy policy = Policy::median;
  std::int64_t warmup = 3;    // no trial is stopped at the first steps
  std::int64_t every = 1;     // trials are judged at every so many steps
  double slack = 0.1;         // bandit: a greater distance from the best value, as a part of it
  double part = 0.2;          // truncation: among the worst trials, which are this part
  double probability = 0.05;  // curve: less likely than this to beat the best
  std::int64_t steps = 0;     // curve: the length of a trial; 0: that of the longest so far
};

/// A trial of an earlier run (warm start).
struct EarlierTrial {
  Values params;
  Numbers metrics;
  std::string run{};
};

struct Program {
  std::string name;  // "digits"
  std::string kind;  // "experiment", "study", "command", or "server": a task for each replica
  exec::Command run;
  std::vector<Parameter> params;
  ValueTypes types;
  std::vector<std::string> optional;  // parameters that a trial need not have
  Search search;
  std::vector<EarlierTrial> earlier;
  std::optional<Goal> goal;
  std::vector<Goal> further_goals;  // beside the first: then the best trials are the Pareto front
  std::vector<Constraint> constraints;  // a trial that breaks one is never the best
  std::optional<EarlyStop> early_stop;
  bool save_best = false;    // at the end the best trial runs once more, with saving on
  bool checkpoints = false;  // a directory that all attempts and budgets of a trial share
  Resources resources;
  machine::DeviceSelection selection;
  std::int64_t parallel = 0;                 // how many trials may run at once; 0: as many as fit
  Duration timeout{};                        // 0: none
  Duration grace = std::chrono::seconds(5);  // between TERM and KILL
  bool enforce = false;                      // trials run only where their limits are
                                             // enforced
  int retries = 0;
  bool stop_on_failure = false;
  std::int64_t allow_failures = 0;  // trials that may fail in a run that is done
  std::int64_t priority = 0;
  exec::GpuMemOver gpu_mem_over = exec::GpuMemOver::warn;
  bool outlive = false;                   // tasks continue when their runner dies
  bool auptimizer = false;                // its parameter file also holds job_id
  std::vector<std::string> score_labels;  // the metrics score_2, score_3, … of #Auptimizer: lines
  std::string remote_directory;           // on other machines trials start in this directory
  std::string script;                     // the one local file that is sent to remote_directory
  std::string input;                      // the file that trials get as standard input, as given;
                                          // "-": that of `berth run`. Empty: none
  std::string gpus;                       // the GPUs that it may use, by CUDA's numbers; "": any
  std::int64_t trials_per_gpu = 1;  // how many share a GPU; resolved when the run is submitted
  bool passive = false;  // a person or program outside carries the trials out and reports
  Duration lease = std::chrono::seconds(30);  // of a study: how long a claim lives unrenewed
  Duration retain{};                          // how long its alloc is kept when it fails
  std::vector<std::string>
      clusters;         // where it runs; empty: this machine. Stored with the run, not in the JSON
  exec::Labels labels;  // of its runs
  std::vector<exec::Notify> notify = {};
  std::vector<std::pair<std::string, std::string>> environment;  // besides the person's own
  // For the person: what was chosen for them, and what is probably not meant. Not in the JSON.
  std::vector<std::string> notes;
  // Their lines in the file, for errors that are found later; 0: none.
  int run_line = 0, resources_line = 0, input_line = 0;
};

inline constexpr std::string_view kBestAgain = "best";  // the label of its last run: save_best
inline constexpr std::size_t kMostEarlier = 1000;       // of all earlier runs together
inline constexpr std::int64_t kMostTrials = 1'000'000;
inline constexpr std::int64_t kMostValues = 10'000'000;  // of all trials together

/// Reads the text of a file named `file`. Errors: invalid, with file, line and key.
Result<Program> read_program(std::string_view text, const std::string& file);

/// Reads the points of a sequence from the text of search.file: a list, or one a line. Errors:
/// invalid.
Status read_points(std::string_view text, const std::string& file, Program& program);

/// [A-Za-z0-9][A-Za-z0-9_.-]*, at most 64 characters.
bool valid_name(std::string_view name);

/// Whether proposals depend on how earlier trials went, so that they are made during the run.
bool adaptive(const Search& search);

/// Whether a search of this method gives out a budget.
bool has_budget(Search::Method method);

/// How many tasks a run with such a search comes to, about: what is promoted depends on how the
/// trials end. 0: all of them are known beforehand.
std::int64_t expected_tasks(const Program& program);

/// The number of trials that propose() gives. Errors: invalid for a grid over a range without
/// points, more than kMostTrials, or more than kMostValues.
Result<std::int64_t> count_trials(const Program& program);

/// The parameters of every trial that is known beforehand, in order. The same program gives the
/// same trials everywhere. Errors: as count_trials().
Result<std::vector<Values>> propose(const Program& program);

/// The program as JSON. It has no params and search where all trials are known beforehand: the
/// store has these themselves.
std::string to_json_text(const Program& program);
/// Errors: corrupt if to_json_text() did not write it.
Result<Program> from_json_text(std::string_view text);

/// The parameters as one JSON object: each value has the type that `types` says.
std::string values_json(const Values& values, const ValueTypes& types = {});
/// Whether it is text by itself: neither a number nor true or false.
bool reads_as_text(const std::string& value);

}  // namespace berth::experiment
