#include "berth/run/search_input.h"

#include <algorithm>

#include "berth/flow/flow.h"

namespace berth::run {

Status read_sequence(os::Env& env, const std::string& directory, experiment::Program& program) {
  const std::string& file = program.search.file;
  if (file.empty()) return {};
  BERTH_ASSIGN(
      const std::string text,
      env.read_file(file.front() == '/' ? file : directory + "/" + file, flow::kMostFlowBytes));
  return experiment::read_points(text, file, program);
}

Status begin_with(Context& context, const std::string& name, experiment::Program& program) {
  BERTH_ASSIGN(const auto run, context.store->find_run(name));
  if (!adaptive(program.search))
    return fail(ErrorKind::usage,
                "--warm-start: this search learns from no trial; methods auto, gp, cma-es, "
                "tpe, halving, hyperband and external do");
  BERTH_ASSIGN(const auto tasks, context.store->tasks(run.id));
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    if (program.earlier.size() == experiment::kMostEarlier) break;
    if (task->state != store::TaskState::done) continue;
    if (experiment::can_warm_start(program, task->params, task->metrics))
      program.earlier.push_back({task->params, task->metrics});
  }
  std::ranges::reverse(program.earlier);
  if (program.earlier.empty())
    return fail(ErrorKind::invalid,
                "--warm-start: no trial of {} lies within these params and has what the goal is "
                "about",
                run.name);
  return {};
}

}  // namespace berth::run
