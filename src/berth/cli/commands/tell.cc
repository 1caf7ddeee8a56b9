// berth ask, berth tell: the trials of a passive run, which are evaluated outside Berth.
#include "berth/base/text.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/studies/outside_trials.h"
#include "berth/render/runs/outside_trials.h"
#include "berth/render/runs/trials.h"

namespace berth::cli {
namespace {

struct AskOptions {
  Output output;
  bool wait = false;
  std::string run;
  std::vector<std::string> enqueue;  // points

  void add_to(Options& options) {
    output.add_to(options);
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
  Output output;
  std::string trial;
  std::vector<std::string> values;

  void add_to(Options& options) {
    output.add_to(options);
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

Result<int> enqueue(engine::Context& context, const AskOptions& options) {
  BERTH_ASSIGN(const auto added,
               engine::enqueue(context, options.run, options.enqueue, "--enqueue"));
  options.output.print(added);
  if (!added.is_awaited)
    options.output.hint(fmt::format("resume it with: berth resume {}\n", added.run));
  return 0;
}

Result<int> ask(os::Env& env, const AskOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  if (!options.enqueue.empty()) return enqueue(context, options);
  os::install_stop_signals();
  const auto waiting = engine::waiting_trials(context, options.run, options.wait);
  if (!waiting && waiting.error().kind == ErrorKind::interrupted)
    return exit_code(ErrorKind::interrupted);
  if (!waiting) return std::unexpected(waiting.error());
  const auto& [run, program, trials] = *waiting;
  options.output.print(*waiting, [&] {
    return trials.empty()
               ? ""
               : render::to_text(render::trials_table(engine::in_turn(trials), program, 0), view());
  });
  options.output.hint(
      trials.empty() ? fmt::format("{} waits for no result: it is {}\n", run.record.name, run.state)
                     : fmt::format("answer with: berth tell {}/{} VALUE\n", run.record.name,
                                   trials.front().label));
  return 0;
}

Result<int> tell(os::Env& env, const TellOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto stored,
               engine::store_result(context, options.trial, join(options.values, " ")));
  options.output.print(stored);
  if (!stored.is_awaited)
    options.output.hint(fmt::format("{} is stored; resume the run with: berth resume {}\n",
                                    stored.trial, stored.run));
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
