// The options of berth run, and the request that they make.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "berth/cli/commands/flow_choices.h"
#include "berth/cli/output.h"
#include "berth/engine/runs/submission.h"

namespace berth::cli {

/// What a task takes of a machine: --cpu, --mem and their like, and --resource.
struct AmountOptions {
  std::array<std::optional<std::string>, 6> known;  // as written, in the order of --help
  std::vector<std::string> others;                  // NAME=AMOUNT

  void add_to(Options& options);
  /// The given amounts by resource. Errors: usage, with the name of the option.
  Result<std::vector<std::pair<std::string, std::int64_t>>> read() const;
};

/// Which GPUs are accepted, and how those of a task are chosen among them.
struct GpuOptions {
  std::vector<int> slot_sizes;
  std::string memory_min, policy, objective, require;

  void add_to(Options& options);
  /// Errors: usage, with the name of the option.
  Result<engine::DeviceOverrides> read() const;
};

struct RunOptions {
  Output output;
  std::string file;                // an experiment or a flow; "": `words` are run
  std::vector<std::string> words;  // a command with its arguments
  std::string name;
  FlowChoices flow;
  AmountOptions amounts;
  GpuOptions gpus;
  std::string enforce;  // "required" or "advisory"
  std::string timeout, gpu_mem_over, retain;
  std::string allow_failures;  // "true" or a number
  int retries = 0, priority = 0, parallel = 0;
  std::vector<std::string> clusters;    // the main one first
  std::string cache;                    // "off", "read", "write" or "on"
  std::vector<std::string> warm_start;  // earlier runs
  std::string image;                    // of a flow's containers
  std::vector<std::string> labels;      // NAME=VALUE
  std::vector<std::string> notify;      // URL, mail:ADDRESS or a command
  std::string rows;                     // a table: a run of the flow for each of its rows
  std::string input;                    // a file, or "-": the standard input of this process
  bool detach = false, send_large = false, plan = false;

  void add_to(Options& options);
  /// What the options ask for. Errors: usage, with the name of the option.
  Result<engine::RunRequest> request(os::Env& env) const;
};

}  // namespace berth::cli
