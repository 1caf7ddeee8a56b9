// What is known before a run is submitted: whether its file is valid, and what it would do: where
// its tasks would start on this machine, which tasks of a flow are cached, or which files would be
// sent to a cluster.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "berth/engine/context.h"
#include "berth/engine/runs/submission.h"
#include "berth/remote/transfer/folder.h"
#include "berth/run/flows/flow_plan.h"

namespace berth::engine {

/// Where the tasks of a command or an experiment would start on this machine.
struct TrialsPlan {
  std::string name;
  std::int64_t tasks = 0;
  Resources resources;  ///< Of each task.
  machine::DeviceSelection selection;
  std::size_t empty = 0;                 ///< Number of parallel tasks that fit the empty machine.
  std::vector<machine::Block> now = {};  ///< The blocks of the tasks that fit now.
  int waiting_before = 0;                ///< Entries of the ledger that are served before this run.
  std::string why_no_more = {};          ///< What limits the number of parallel tasks.
  std::string enforced = {};             ///< How limits are enforced; "": they are advisory.
  std::string because = {};              ///< Why they are advisory, or where they are enforced.
};

struct FlowPlan {
  struct Step : run::StepPlan {
    std::size_t in_parallel = 0;  ///< Number of its tasks that fit the empty machine.
  };
  std::string name;
  std::vector<Step> steps = {};
  std::vector<std::string> missing_images;  ///< Images that are not on this machine.
};

/// Which files of an experiment's folder would be sent to hosts of the clusters.
struct SendingPlan {
  std::vector<std::string> clusters;
  remote::Folder folder = {};
  std::vector<std::string> warnings = {};  ///< Questions that the user has to confirm before.
};

using RunPlan = std::variant<TrialsPlan, FlowPlan, SendingPlan>;

struct CheckedFile {
  std::string file;
  bool is_flow = false;
};
/// Reads and checks a file without running it. Errors: those of read_submission() and check().
Result<CheckedFile> check_file(os::Env& env, const RunRequest& request, const Note& note);

/// Plans a submission that has passed check(). Errors: usage, if the resources of its clusters are
/// not known; those of the ledger, the cache and the folder.
Result<RunPlan> plan_of(Context& context, const Submission& submission);

}  // namespace berth::engine
