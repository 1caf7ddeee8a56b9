// berth ask, berth tell: the trials of a passive run, whose scores somebody else finds out.
#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/run_json.h"
#include "berth/engine/run_record.h"
#include "berth/engine/run_state.h"
#include "berth/engine/shown_run.h"
#include "berth/engine/trials.h"
#include "berth/experiment/own_point.h"
#include "berth/render/trials.h"
#include "berth/run/enqueued.h"
#include "berth/run/find_run.h"
#include "berth/run/passive_worker.h"
#include "berth/run/study.h"

namespace berth::cli {
namespace {

struct AskOptions {
  bool json = false, wait = false;
  std::string run;
  std::vector<std::string> enqueue;  // points

  void add_to(Options& options) {
    options.json(json);
    add_run(options, run);
    options.flag("--wait", wait, "Wait until a trial is ready or the run ends");
    options
        .list("--enqueue", enqueue,
              "Try this point next; the search proposes parameters that it omits. Also for studies "
              "and adaptive searches")
        .one_at_a_time()
        .named("POINT")
        .excludes("--wait");
    options.footer(
        "Examples:\n"
        "  berth ask digits-3 --wait --json\n"
        "  berth ask digits-3 --enqueue 'lr=0.1 net=deep' --enqueue lr=0.2");
  }
};

struct TellOptions {
  bool json = false;
  std::string trial;
  std::vector<std::string> values;

  void add_to(Options& options) {
    options.json(json);
    options.after_dashes(values);  // a negative score, say
    add_run(options, trial, "TRIAL", "Trial, such as digits-3/17");
    options.list("VALUE", values,
                 "Score (one value per goal), NAME=VALUE pairs, or 'failed' and a reason");
    options.footer(
        "Examples:\n"
        "  berth tell digits-3/17 0.93\n"
        "  berth tell digits-3/17 accuracy=0.93 loss=0.2\n"
        "  berth tell digits-3/17 -- -0.5\n"
        "  berth tell digits-3/17 failed 'it caught fire'");
  }
};

Result<experiment::Program> passive_program(const store::RunRecord& run) {
  BERTH_ASSIGN(auto program, engine::program_of(run));
  if (run.kind == run::kStudy)
    return fail(ErrorKind::invalid,
                "{} is a study: ask for its trials and report their results with berth study, or "
                "with berth.load_study(\"{}\") in Python",
                run.name, run.name);
  if (!program.passive)
    return fail(ErrorKind::invalid, "{} is not passive: its trials report for themselves",
                run.name);
  return program;
}

/// The trials that run and have no answer yet. The answers are read before the tasks: an answer is
/// removed only once its task is recorded as ended.
Result<std::vector<store::TaskRecord>> open_trials(os::Env& env, run::Context& context,
                                                   const store::RunRecord& run) {
  const auto answered =
      run::answered(env, run::answers_directory(run_directory(context, run.name)));
  BERTH_ASSIGN(auto tasks, context.store->tasks(run.id));
  std::erase_if(tasks, [&](const auto& task) {
    return task.state != store::TaskState::running ||
           std::ranges::find(answered, task.number) != answered.end();
  });
  return tasks;
}

/// Its search takes the points by itself. Returns what a person is told.
Result<std::string> add_to_study(os::Env& env, run::Context& context, const store::RunRecord& run,
                                 std::vector<experiment::Values>& points) {
  BERTH_ASSIGN(auto study, run::Study::open(*context.store, env, run.name,
                                            run::runs_directory(context.state_directory)));
  for (auto& point : points) {
    BERTH_ASSIGN(point, study.check_point(std::move(point)));
  }
  std::string told;
  for (const auto& point : points) {
    BERTH_ASSIGN(const TaskNumber number, study.enqueue(point));
    told += fmt::format("{}/{}\n", run.name, study.trial(number).label);
  }
  return told;
}

/// Leaves the points for the runner of an experiment.
Result<std::string> add_to_run(os::Env& env, run::Context& context, const store::RunRecord& run,
                               const experiment::Program& program,
                               std::vector<experiment::Values>& points) {
  if (!adaptive(program.search))
    return fail(ErrorKind::invalid,
                "{}: its trials are fixed; only the methods auto, gp, cma-es, tpe, nsga2 and "
                "external accept further trials",
                run.name);
  const auto over = [](const store::RunRecord& record) {
    return record.state == store::RunState::done || record.state == store::RunState::failed;
  };
  const auto refused = [&] {
    return fail(ErrorKind::invalid, "{} has ended and starts no more trials", run.name);
  };
  if (over(run)) return refused();
  for (auto& point : points) {
    BERTH_ASSIGN(point, check_own_point(program, std::move(point), false));
  }
  std::vector<std::string> files;
  for (const auto& point : points) {
    BERTH_ASSIGN(files.emplace_back(),
                 run::leave_point(env, run_directory(context, run.name), point));
  }
  // Its runner may have looked for the last time just before.
  BERTH_ASSIGN(const auto now, context.store->find_run(run.name));
  std::size_t left = 0;
  for (const auto& file : files) left += over(now) && env.remove_file(file) ? 1 : 0;
  if (left > 0) return refused();
  return engine::is_under_way(engine::state_now(env, now))
             ? ""
             : fmt::format("resume it with: berth resume {}\n", run.name);
}

Result<int> enqueue(os::Env& env, const AskOptions& options) {
  std::vector<experiment::Values> points;
  for (const auto& text : options.enqueue) {
    auto point = experiment::read_own_point(text);
    if (!point) return std::unexpected(within("--enqueue", std::move(point).error()));
    points.push_back(*std::move(point));
  }
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  BERTH_ASSIGN(const auto program, engine::program_of(record));
  if (record.kind == "flow" || !program.goal)
    return fail(ErrorKind::invalid, "{} searches nothing", record.name);
  const auto told = record.kind == run::kStudy ? add_to_study(env, context, record, points)
                                               : add_to_run(env, context, record, program, points);
  if (!told) return std::unexpected(told.error());
  if (options.json) {
    JsonWriter json;
    json.object().add("version", 1).key("enqueued").array();
    for (const auto& point : points) json.raw(experiment::values_json(point, program.types));
    print(json.end().end().take() + "\n");
  } else if (record.kind == run::kStudy) {
    print(*told);
  } else {
    print_error(*told);
  }
  return 0;
}

Result<int> ask(os::Env& env, const AskOptions& options) {
  if (!options.enqueue.empty()) return enqueue(env, options);
  constexpr Duration kLookEvery = std::chrono::milliseconds(20);
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  os::install_stop_signals();
  for (;;) {
    BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
    BERTH_ASSIGN(const auto program, passive_program(record));
    BERTH_ASSIGN(const auto open, open_trials(env, context, record));
    const engine::ShownRun shown{record, engine::state_now(env, record)};
    // A runner that has just taken over a stopped run has yet to say that it runs.
    const os::ProcessIdentity runner{static_cast<pid_t>(record.runner_pid),
                                     record.runner_started_at};
    const bool going =
        engine::is_under_way(shown.state) || (record.runner_pid != 0 && env.alive(runner));
    if (open.empty() && going && options.wait) {
      if (env.stop_signals() > 0) return exit_code(ErrorKind::interrupted);
      BERTH_TRY(env.wait({}, env.now() + kLookEvery));
      continue;
    }
    if (options.json) {
      print(engine::show_json(shown, open));
    } else if (open.empty()) {
      print_error(fmt::format("{} waits for no result: it is {}\n", record.name, shown.state));
    } else {
      print(render::trials_table(engine::in_turn(open), program, 0));
      print_error(
          fmt::format("answer with: berth tell {}/{} VALUE\n", record.name, open.front().label));
    }
    return 0;
  }
}

Result<int> tell(os::Env& env, const TellOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  const engine::TaskPath path = engine::parse_task_path(options.trial);
  BERTH_ASSIGN(const auto record, run::find_run(context, path.run));
  BERTH_ASSIGN(const auto program, passive_program(record));
  if (path.task.empty())
    return fail(ErrorKind::usage, "expected RUN/TASK, such as {}/1, got '{}'", record.name,
                clip(options.trial));
  BERTH_ASSIGN(const auto task, run::find_task(context, record, path.task));
  if (store::final(task.state))
    return fail(ErrorKind::invalid, "{}/{} has ended already: {}", record.name, task.label,
                store::name(task.state));
  const auto answer = run::read_answer(join(options.values, " "), run::asked_of(program));
  if (!answer) return std::unexpected(within(options.trial, answer.error()));
  BERTH_TRY(run::leave_answer(env, run::answers_directory(run_directory(context, record.name)),
                              task.number, *answer));
  const std::string id = fmt::format("{}/{}", record.name, task.label);
  if (options.json) {
    print(names_json("told", {id}));
  } else if (!engine::is_under_way(engine::state_now(env, record))) {
    print_error(
        fmt::format("{} is stored; resume the run with: berth resume {}\n", id, record.name));
  }
  return 0;
}

}  // namespace

Command ask_command() {
  return command("ask", "List trials that wait for a result from outside Berth", ask);
}

Command tell_command() {
  return command("tell", "Record the result of a trial evaluated outside Berth", tell);
}

}  // namespace berth::cli
