#include "berth/run/trials/search_input.h"

#include <algorithm>

#include "berth/experiment/proposers/external.h"
#include "berth/experiment/proposers/transfer.h"
#include "berth/flow/flow.h"
#include "berth/run/state/find_run.h"

namespace berth::run {

Status read_sequence(os::Env& env, const std::string& directory, experiment::Program& program) {
  const std::string& file = program.search.file;
  if (file.empty()) return {};
  BERTH_ASSIGN(
      const std::string text,
      env.read_file(file.front() == '/' ? file : directory + "/" + file, flow::kMostFlowBytes));
  return experiment::read_points(text, file, program);
}

Status begin_with(Context& context, const std::vector<std::string>& runs,
                  experiment::Program& program) {
  if (!adaptive(program.search))
    return fail(ErrorKind::usage,
                "--warm-start: this search method does not learn from trials; auto, gp, cma-es, "
                "nsga2, tpe, halving, hyperband and external do");
  if (program.search.method == experiment::Search::Method::pbt)
    return fail(
        ErrorKind::usage,
        "--warm-start: pbt continues from its own checkpoints, which another run does not have");
  if (runs.size() > experiment::kMostEarlier)
    return fail(ErrorKind::usage, "--warm-start: expected at most {} runs, got {}",
                experiment::kMostEarlier, runs.size());
  const bool external = program.search.method == experiment::Search::Method::external;
  for (const auto& name : runs) {
    BERTH_ASSIGN(const auto run, find_run(context, name));
    BERTH_ASSIGN(const auto tasks, context.store->tasks(run.id));
    std::vector<experiment::EarlierTrial> latest;
    for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
      if (external && latest.size() == experiment::kMostEarlier / runs.size()) break;
      if (task->state != store::TaskState::done) continue;
      // A program that proposes gets only trials that were run as they are.
      if (external && !experiment::fits(program.params, task->params)) continue;
      if (auto point = experiment::adapted(program, task->params, task->metrics))
        latest.push_back({*std::move(point), task->metrics, run.name});
    }
    if (latest.empty())
      return fail(ErrorKind::invalid,
                  "--warm-start: no trial of {} is within these params and has the goal's metric",
                  run.name);
    program.earlier.insert(program.earlier.end(), latest.rbegin(), latest.rend());
  }
  if (!external) program.earlier = experiment::good_trials(program);
  return {};
}

}  // namespace berth::run
