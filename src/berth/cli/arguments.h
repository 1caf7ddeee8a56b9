// The command line, taken apart: the only file that knows of CLI11 is arguments.cc.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "berth/base/result.h"

namespace berth::cli {

/// Of berth plan.
struct PlanArguments {
  std::string model, solver, saturation, time_limit, sweep;  // as written; "": the document's
  std::vector<std::string> sets;                             // "capacity.H100=16"
  bool delayed_best_effort = false, heterogeneous = false, candidates = false;
  bool fail_unserved = false;
};

/// Of berth serve.
struct ServeArguments {
  std::string listen, token_file, certificate, key;
};

struct Arguments {
  std::string command;  // "run", …; "" for none
  bool json = false;

  std::string target;              // FILE of run; RUN or RUN/TASK of the others
  std::vector<std::string> words;  // what stood behind "--"
  std::string name;
  std::vector<std::pair<std::string, std::string>> resources;  // as written: {"cpu", "2"}
  std::vector<int> slot_sizes;
  std::string gpu_mem_min;
  std::string timeout;
  std::string gpu_mem_over;  // of run: warn or kill
  int retries = 0;
  int priority = 0;
  int parallel = 0;
  std::string retain;
  bool failed = false, all = false, take_file = false;  // of retry; all: of place, too
  bool follow = false, raw_output = false;              // of logs
  bool send_large = false;                              // of run, resume and retry
  bool detach = false, plan_only = false, dry_run = false, once = false;
  std::vector<std::string> clusters;     // of run: the main one first
  std::string action;                    // of cluster: list, probe, add, remove
  std::string warm_start;                // of run: another one
  std::string cache;                     // of run: off, read, write or on; "": on
  bool verify = false, collect = false;  // of cache
  std::string unused_for;
  std::optional<std::string> graph;  // of show: text or dot
  std::string sort;                  // of show
  bool csv = false;
  std::string metric, direction;     // of compare
  bool wait = false;                 // of ask
  std::vector<std::string> values;   // of tell
  std::vector<std::string> targets;  // of rm, compare
  std::string older_than;
  int keep = 0;
  std::string disk_directory;
  std::string enforce;
  bool probe = false;
  std::string topology;
  std::string require, policy, objective;  // of place, and of run as --gpu-require, …
  std::optional<std::string> available;    // "" is none of them
  PlanArguments plan;
  ServeArguments serve;
  std::vector<std::string> raw;  // the whole command line, as it came
};

/// What is to be printed instead of doing anything: help, the version.
struct Printout {
  std::string text;
};

/// usage: names what is wrong and where help is.
Result<std::variant<Arguments, Printout>> parse_arguments(int count, const char* const* values);

}  // namespace berth::cli
