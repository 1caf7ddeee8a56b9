#include "berth/cli/follow.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/screen.h"
#include "berth/cli/state_line.h"
#include "berth/engine/detach.h"
#include "berth/engine/drive.h"
#include "berth/engine/failures.h"
#include "berth/engine/flow_steps.h"
#include "berth/engine/run_json.h"
#include "berth/engine/run_record.h"
#include "berth/engine/run_state.h"
#include "berth/engine/trials.h"
#include "berth/render/failures.h"
#include "berth/render/table.h"
#include "berth/render/trials.h"
#include "berth/run/clusters.h"
#include "berth/run/find_run.h"
#include "berth/run/run_end.h"
#include "berth/run/runner.h"
#include "berth/run/stale_outputs.h"

namespace berth::cli {
namespace {

/// Prints the tasks that failed: the first ones whole, the others by a line.
Status print_failures(run::Context& context, const store::RunRecord& record,
                      const std::vector<store::TaskRecord>& tasks) {
  constexpr std::size_t kMostWhole = 3;
  BERTH_ASSIGN(const auto failures, engine::failures_of(context, record, tasks, render::kMostRows));
  for (std::size_t i = 0; i < failures.size(); ++i)
    print(i < kMostWhole ? render::failure_text(failures[i])
                         : fmt::format("{} failed: {}; berth why {}\n", failures[i].id,
                                       failures[i].cause, failures[i].id));
  if (record.counts.failed > static_cast<std::int64_t>(render::kMostRows))
    print(fmt::format("… all {}: berth show {}\n", record.counts.failed, record.name));
  return {};
}

/// Tells of files that nothing writes any more.
Status print_stale(run::Context& context, const store::RunRecord& record,
                   const std::vector<store::TaskRecord>& tasks) {
  constexpr std::size_t kMostNamed = 5;
  BERTH_ASSIGN(const auto stale, run::stale_outputs(context, record, tasks));
  if (stale.paths.empty()) return {};
  const std::size_t named = std::min(stale.paths.size(), kMostNamed);
  std::string text = join(
      std::vector(stale.paths.begin(), stale.paths.begin() + static_cast<std::ptrdiff_t>(named)),
      ", ");
  if (named < stale.paths.size()) text += fmt::format(" and {} more", stale.paths.size() - named);
  print_error(fmt::format("note: {} wrote {}, which the flow no longer writes\n", stale.run, text));
  return {};
}

Status print_flow(const store::RunRecord& record, const std::vector<store::TaskRecord>& tasks) {
  BERTH_ASSIGN(const auto flow, engine::flow_of(record));
  print(steps_table(engine::step_counts(flow, record, tasks)));
  return {};
}

Status print_trials(const store::RunRecord& record, const std::vector<store::TaskRecord>& tasks) {
  BERTH_ASSIGN(const auto program, experiment::from_json_text(record.spec_json));
  print(render::trials_table(engine::sorted_trials(tasks, program), program, render::kMostRows));
  if (tasks.size() > render::kMostRows)
    print(fmt::format("… all {}: berth show {}\n", tasks.size(), record.name));
  return {};
}

/// Prints the results of a finished run on standard output. Returns the exit code.
Result<int> conclude(os::Env& env, run::Context& context, const store::RunRecord& record,
                     bool json) {
  const bool through = record.kind == "command";
  const bool stopped = record.state == store::RunState::stopped;
  if (json || !through) {
    BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
    if (json) {
      BERTH_ASSIGN(auto used, context.store->usage(record.id));
      BERTH_ASSIGN(auto failures, engine::failures_of(context, record, tasks, render::kMostRows));
      print(engine::show_json(
          {record, engine::state_now(env, record), std::move(used), std::move(failures)}, tasks));
    } else {
      BERTH_TRY(record.kind == "flow" ? print_flow(record, tasks) : print_trials(record, tasks));
      BERTH_TRY(print_failures(context, record, tasks));
      BERTH_TRY(print_stale(context, record, tasks));
      print_state_line(record, store::name(record.state));
      BERTH_ASSIGN(const auto program, engine::program_of(record));
      print(engine::best_text(record, tasks, program));
      if (record.kind == "experiment" && !program.goal && record.counts.done > 1)
        print_error(fmt::format("note: {}\n", engine::no_goal_text(record, tasks)));
    }
  } else if (record.state == store::RunState::failed) {
    BERTH_ASSIGN(const auto task, run::find_task(context, record, "1"));
    print_error(fmt::format("berth: {} failed: {}; berth why {}/1\n", record.name,
                            engine::cause_text(task), record.name));
  }
  if (stopped) print_error(fmt::format("stopped; resume it with: berth resume {}\n", record.name));
  return run::exit_code_of(*context.store, record);
}

/// Drives the run, and again whenever what needs consent was answered with yes.
Result<store::RunRecord> drive_and_ask(os::Env& env, run::Context& context, const std::string& name,
                                       Show show, const std::vector<TaskNumber>& only) {
  for (;;) {
    Screen screen(env, name, show);
    auto final = engine::drive(context, name, screen, print_error, only);
    if (final || final.error().kind != ErrorKind::unconfirmed) return final;
    const std::string question = final.error().message + ". Send it?";
    if (show == Show::notes || !is_confirmed(env, question)) return final;
    BERTH_ASSIGN(const auto record, run::find_run(context, name));
    BERTH_TRY(run::confirm_sending(context, record));
  }
}

}  // namespace

bool is_confirmed(os::Env& env, const std::string& question) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0 ||
      tcgetpgrp(STDIN_FILENO) != getpgrp())
    return false;
  print_error(question + " [y/N] ");
  std::array<os::Watch, 1> watches{os::Watch{.fd = STDIN_FILENO}};
  while (!watches[0].ready)
    if (env.stop_signals() > 0 || !env.wait(watches, std::nullopt)) return false;
  std::array<char, 256> answer{};
  const auto got = ::read(STDIN_FILENO, answer.data(), answer.size());
  const auto word =
      lower(trim({answer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))}));
  return word == "y" || word == "yes";
}

Result<int> drive_to_end(os::Env& env, run::Context& context, const store::RunRecord& record,
                         bool json, const std::vector<TaskNumber>& only) {
  os::install_stop_signals();
  const bool through = record.kind == "command";
  const Show show = json ? Show::notes : through ? Show::output : Show::all;
  auto final = drive_and_ask(env, context, record.name, show, only);
  if (!final) {
    const bool driven_elsewhere = final.error().kind == ErrorKind::busy;
    const bool unasked = final.error().kind == ErrorKind::unconfirmed;
    if (!driven_elsewhere)
      final.error().message +=
          fmt::format("; {}resume it with: berth resume {}{}",
                      unasked ? "after that, or to send it all the same, " : "",
                      unasked ? "--send-large " : "", record.name);
    return std::unexpected(final.error());
  }
  BERTH_ASSIGN(const auto unreachable, run::may_run_remotely(context, *final));
  for (const auto& one : unreachable) print_error(run::to_text(one, final->name) + "\n");
  return conclude(env, context, *final, json);
}

Result<int> drive_detached(os::Env& env, run::Context& context, const store::RunRecord& record,
                           bool json) {
  BERTH_TRY(engine::start_detached(context, record));
  if (json) {
    BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
    BERTH_ASSIGN(const auto now, context.store->find_run(record.name));
    print(engine::show_json({now, engine::state_now(env, now)}, tasks));
    return 0;
  }
  print(record.name + "\n");
  print_error(fmt::format("follow it with: berth logs -f {}; wait for it with: berth wait {}\n",
                          record.name, record.name));
  return 0;
}

}  // namespace berth::cli
