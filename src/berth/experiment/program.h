// What a run executes: one command, tried with many parameters or, without any, once. Read from a
// person's file or made from a command line, and kept as JSON with the run, so that a resume needs
// nothing else. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/exec/command.h"
#include "berth/exec/messages.h"
#include "berth/resource/resources.h"

namespace berth::experiment {

using Values = std::vector<std::pair<std::string, std::string>>;  // name, value as text
using Numbers = std::vector<std::pair<std::string, double>>;      // name, value

/// What an earlier parameter has to be for a later one to be there at all.
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
  std::int64_t points = 0;           // of the grid; 0: each integer, or not given
  std::vector<Condition> when = {};  // where they do not all hold, a trial goes without it
};

/// What a trial may spend, as the last of its parameters: epochs, say.
struct Budget {
  std::string parameter;
  double min = 1, max = 1;
  std::int64_t reduction = 3;  // one of so many goes on, with so many times the budget
};

struct Search {
  enum class Method : std::uint8_t {
    grid,
    random,
    sequence,
    sobol,
    tpe,
    halving,
    hyperband,
    external,
  };
  static constexpr auto kMethodNames = names<Method>({
      {Method::grid, "grid"},
      {Method::random, "random"},
      {Method::sequence, "sequence"},
      {Method::sobol, "sobol"},
      {Method::tpe, "tpe"},
      {Method::halving, "halving"},
      {Method::hyperband, "hyperband"},
      {Method::external, "external"},
  });
  Method method = Method::grid;
  std::int64_t samples = 0;  // of those that draw: how many points of the space
  std::uint64_t seed = 0;
  std::vector<Values> points{};    // of sequence
  std::string file{};              // where a person wrote them; read by whoever reads files
  std::optional<Budget> budget{};  // of halving and hyperband
  bool model = false;              // these draw as tpe does
  exec::Command proposer{};        // of external: is asked, and told, on its input
  Duration patience{};             // how long it may take for an answer
};

struct Goal {
  enum class Score : std::uint8_t { last, best };
  static constexpr auto kScoreNames = names<Score>({{Score::last, "last"}, {Score::best, "best"}});
  std::string metric;
  bool maximize = true;
  Score score = Score::last;  // of what a trial reports
};

/// Under which name the score is among a trial's metrics, and what it is.
std::string score_name(const Goal& goal);
std::optional<double> score(const Goal& goal, const Numbers& metrics);
/// The new score under a name of its own, where the best counts and this report of the metric is
/// it.
std::optional<double> better_score(const Goal& goal, const Numbers& metrics, double reported);

/// When a running trial is not worth its end. Steps are counted in reports of the goal's metric.
struct EarlyStop {
  enum class Policy : std::uint8_t { median, bandit, truncation, curve };
  static constexpr auto kPolicyNames = names<Policy>({{Policy::median, "median"},
                                                      {Policy::bandit, "bandit"},
                                                      {Policy::truncation, "truncation"},
                                                      {Policy::curve, "curve"}});
  Policy policy = Policy::median;
  std::int64_t warmup = 3;    // the first steps, at which none is stopped
  std::int64_t every = 1;     // looked at each so many steps
  double slack = 0.1;         // bandit: farther than this part of the best value from it
  double part = 0.2;          // truncation: among this part, the worst
  double probability = 0.05;  // curve: less likely than this to beat the best
  std::int64_t steps = 0;     // curve: of a whole trial; 0: the most that one has had
};

/// A trial of another run, which the search begins with.
struct Earlier {
  Values params;
  Numbers metrics;
};

struct Program {
  std::string name;  // "digits"
  std::string kind;  // "experiment" or "command"
  exec::Command run;
  std::vector<Parameter> params;
  std::vector<std::string> optional;  // names of those that a trial may go without
  Search search;
  std::vector<Earlier> earlier;
  std::optional<Goal> goal;
  std::vector<Goal> further_goals;  // beside the first: the best are those that no other dominates
  std::optional<EarlyStop> early_stop;
  bool save_best = false;    // at the end the best one runs once more, told to save
  bool checkpoints = false;  // a directory that all attempts and budgets of a trial share
  Resources resources;
  machine::DeviceSelection selection;
  std::int64_t parallel = 0;                 // side by side at most; 0: as many as fit
  Duration timeout{};                        // 0: none
  Duration grace = std::chrono::seconds(5);  // between TERM and KILL
  bool enforce = false;                      // a machine that cannot hold a trial to its limits
                                             // does not run it
  int retries = 0;
  bool stop_on_failure = false;
  std::int64_t priority = 0;
  exec::GpuMemOver gpu_mem_over = exec::GpuMemOver::warn;
  bool outlive = false;           // its tasks go on when their runner dies
  bool auptimizer = false;        // its parameter file also holds job_id
  std::string there;              // the folder of other machines in which its trials start
  std::string script;             // of there: the one file of here that goes with them
  std::string gpus;               // the only ones it may use, as CUDA counts them; "": any
  std::int64_t trials_a_gpu = 1;  // that share each: settled when it is submitted
  bool passive = false;  // somebody else carries the trials out, and tells what came of them
  Duration retain{};     // for which its alloc is kept when it fails
  std::vector<std::string> clusters;  // where it runs; empty: here. Kept with the run, not in JSON
  std::vector<std::pair<std::string, std::string>> environment;  // besides the person's own
  // Where these stand in the file, for errors that need the world; 0 where there is none.
  int run_line = 0, resources_line = 0;
};

inline constexpr std::string_view kBestAgain = "best";  // the label of its last run: save_best
inline constexpr std::size_t kMostEarlier = 1000;
inline constexpr std::int64_t kMostTrials = 1'000'000;
inline constexpr std::int64_t kMostValues = 10'000'000;  // of all trials together

/// From the text of a file named `file`. invalid: names file, line and key.
Result<Program> read_program(std::string_view text, const std::string& file);

/// The points of a sequence from the text of search.file: a list, or one a line. invalid.
Status read_points(std::string_view text, const std::string& file, Program& program);

/// [A-Za-z0-9][A-Za-z0-9_.-]*, at most 64 characters.
bool valid_name(std::string_view name);

/// Whether trials are proposed as the run goes, since they depend on how earlier ones went.
bool adaptive(const Search& search);

/// Whether the search can learn from a trial of another run: its values lie within the space (and
/// its budget is one of this search), and all goals have a score.
bool could_begin_with(const Program& program, const Values& values, const Numbers& metrics);

/// How many trials propose() gives. invalid: a grid over a range without points, more than
/// kMostTrials, or more than kMostValues.
Result<std::int64_t> count_trials(const Program& program);

/// The parameters of every trial that is known beforehand, in order. The same program gives the
/// same trials everywhere. invalid: as count_trials().
Result<std::vector<Values>> propose(const Program& program);

/// Without params and search: the trials themselves are stored.
std::string to_json_text(const Program& program);
/// corrupt: not what to_json_text() writes.
Result<Program> from_json_text(std::string_view text);

/// The parameters as one JSON object: numbers, true and false as such, the rest as text.
std::string values_json(const Values& values);

}  // namespace berth::experiment
