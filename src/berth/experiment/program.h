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
#include "berth/resource/resources.h"

namespace berth::experiment {

/// One dimension of the search space: choices, or a range.
struct Parameter {
  enum class Scale : std::uint8_t { linear, log };
  std::string name;
  std::vector<std::string> choices;  // empty: a range
  double min = 0, max = 0;
  Scale scale = Scale::linear;
  bool integer = false;
  std::int64_t points = 0;  // of the grid; 0: each integer, or not given
};

struct Search {
  enum class Method : std::uint8_t { grid, random };
  Method method = Method::grid;
  std::int64_t samples = 0;  // of random
  std::uint64_t seed = 0;
};

struct Goal {
  std::string metric;
  bool maximize = true;
};

struct Program {
  std::string name;  // "digits"
  std::string kind;  // "experiment" or "command"
  exec::Command run;
  std::vector<Parameter> params;
  Search search;
  std::optional<Goal> goal;
  Resources resources;
  std::vector<int> slot_sizes;               // slots that a device of it may have; empty: any
  std::int64_t parallel = 0;                 // side by side at most; 0: as many as fit
  Duration timeout{};                        // 0: none
  Duration grace = std::chrono::seconds(5);  // between TERM and KILL
  int retries = 0;
  bool stop_on_failure = false;
  std::int64_t priority = 0;
  bool outlive = false;  // its tasks go on when their runner dies
  std::vector<std::pair<std::string, std::string>> environment;  // besides the person's own
  // Where these stand in the file, for errors that need the world; 0 where there is none.
  int run_line = 0, resources_line = 0;
};

using Values = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::int64_t kMostTrials = 1'000'000;
inline constexpr std::int64_t kMostValues = 10'000'000;  // of all trials together

/// From the text of a file named `file`. invalid: names file, line and key.
Result<Program> read_program(std::string_view text, const std::string& file);

/// [A-Za-z0-9][A-Za-z0-9_.-]*, at most 64 characters.
bool valid_name(std::string_view name);

/// How many trials propose() gives. invalid: a grid over a range without points, more than
/// kMostTrials, or more than kMostValues.
Result<std::int64_t> count_trials(const Program& program);

/// The parameters of every trial, in order. The same program gives the same trials everywhere.
/// invalid: as count_trials().
Result<std::vector<Values>> propose(const Program& program);

/// Without params and search: the trials themselves are stored.
std::string to_json_text(const Program& program);
/// corrupt: not what to_json_text() writes.
Result<Program> from_json_text(std::string_view text);

/// The parameters as one JSON object: numbers as numbers, the rest as text.
std::string values_json(const Values& values);

}  // namespace berth::experiment
