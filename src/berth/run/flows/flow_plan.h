// What a run of a flow would do, as far as that can be told without running it.
#pragma once

#include "berth/run/flows/flow_run.h"

namespace berth::run {

/// A task that would start at once.
struct TaskPlan {
  std::string name;
  std::string command;               // as a person would write it, with its names replaced
  std::vector<std::string> because;  // why it would run, a line each
};

/// A URL that tasks take in.
struct UrlPlan {
  std::string url;
  std::int64_t size = -1;  // -1: its server does not say
  bool there = false;      // it was fetched, and has not changed
};

struct StepPlan {
  std::string name;
  Resources resources;  // of each task
  machine::DeviceSelection selection;
  std::int64_t cached = 0;          // tasks found in the cache
  std::int64_t runs = 0;            // whose inputs are there: they would start
  std::vector<TaskPlan> tasks{};    // these
  std::int64_t skipped = 0;         // whose `when` does not hold
  std::int64_t later = 0;           // that wait for these
  std::vector<std::string> asks{};  // how its requests were found, and those of later attempts
  std::vector<std::string> overwrites{};  // protected places that its tasks would replace
  std::vector<std::string> refused{};     // why outputs would be refused: protected or edited
  std::vector<UrlPlan> urls{};            // each once in the whole plan
  bool unfolded = true;                   // false: how many tasks it has shows later
};

/// By step, in the order of the file. Reads what the tasks take in, to know whether it has changed;
/// of URLs it asks their servers, and fetches nothing.
Result<std::vector<StepPlan>> plan(Context& context, FlowProgram& program,
                                   const std::string& directory);

/// Checks that nothing that is protected would be written anew, as far as that can be told before
/// anything runs: what waits for something that runs is taken to change. Errors: exists, with the
/// file.
Status check_protected(Context& context, FlowProgram& program, const std::string& directory);

}  // namespace berth::run
