#include "berth/cli/commands/follow.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/cli/screen.h"
#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/trials.h"
#include "berth/engine/runs/control.h"
#include "berth/engine/runs/drive.h"
#include "berth/engine/runs/results.h"
#include "berth/render/runs/failures.h"
#include "berth/render/runs/flow_graph.h"
#include "berth/render/runs/results.h"
#include "berth/render/runs/runs.h"
#include "berth/render/runs/trials.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

/// Prints the tasks that failed: the first ones whole, the others by a line.
void print_failures(const engine::RunResults& results) {
  constexpr std::size_t kMostWhole = 3;
  const auto& [record, state, used, failures, labels] = results.shown;
  for (std::size_t i = 0; i < failures.size(); ++i)
    print(i < kMostWhole ? render::failure_text(failures[i])
                         : fmt::format("{} failed: {}; berth why {}\n", failures[i].id,
                                       failures[i].cause, failures[i].id));
  if (record.counts.failed > static_cast<std::int64_t>(render::kMostRows))
    print(fmt::format("… all {}: berth show {}\n", record.counts.failed, record.name));
}

void print_stale(const run::StaleOutputs& stale) {
  constexpr std::size_t kMostNamed = 5;
  if (stale.paths.empty()) return;
  const std::size_t named = std::min(stale.paths.size(), kMostNamed);
  std::string text = join(
      std::vector(stale.paths.begin(), stale.paths.begin() + static_cast<std::ptrdiff_t>(named)),
      ", ");
  if (named < stale.paths.size()) text += fmt::format(" and {} more", stale.paths.size() - named);
  print_error(fmt::format("note: {} wrote {}, which the flow no longer writes\n", stale.run, text));
}

/// A command's task has printed its output already.
void print_results(const engine::RunResults& results) {
  const auto& record = results.shown.record;
  const auto& tasks = results.tasks;
  if (record.kind == "command") {
    if (record.state == store::RunState::failed && !tasks.empty())
      print_error(fmt::format("berth: {} failed: {}; berth why {}/1\n", record.name,
                              engine::cause_text(tasks.front()), record.name));
    return;
  }
  if (record.kind == "flow") {
    print(render::steps_table(engine::step_counts(results.flow, record, tasks)));
  } else {
    print(render::trials_table(engine::sorted_trials(tasks, results.program), results.program,
                               render::kMostRows));
    if (tasks.size() > render::kMostRows)
      print(fmt::format("… all {}: berth show {}\n", tasks.size(), record.name));
  }
  print_failures(results);
  print_stale(results.stale);
  print(render::state_line(record, store::name(record.state), view()));
  print(engine::best_text(record, tasks, results.program));
  if (record.kind == "experiment" && !results.program.goal && record.counts.done > 1)
    print_error(fmt::format("note: {}\n", engine::no_goal_text(record, tasks)));
}

/// Prints the results of a finished run. Returns the exit code.
Result<int> conclude(engine::Context& context, const store::RunRecord& record,
                     const Output& output) {
  BERTH_ASSIGN(const auto results, engine::results_of(context, record, render::kMostRows));
  output.print(results, [&] {
    print_results(results);
    return "";
  });
  if (record.state == store::RunState::stopped)
    print_error(fmt::format("stopped; resume it with: berth resume {}\n", record.name));
  return results.exit_code;
}

/// Drives the run, and again whenever what needs consent was answered with yes.
Result<store::RunRecord> drive_and_ask(os::Env& env, engine::Context& context,
                                       const std::string& name, Show show,
                                       const std::vector<TaskNumber>& only) {
  for (;;) {
    Screen screen(env, name, show);
    auto final = engine::drive(context, name, screen, print_error, only);
    if (final || final.error().kind != ErrorKind::unconfirmed) return final;
    const std::string question = final.error().message + ". Send it?";
    if (show == Show::notes || !is_confirmed(env, question)) return final;
    BERTH_TRY(engine::confirm_sending(context, name));
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

Result<int> drive_to_end(os::Env& env, engine::Context& context, const store::RunRecord& record,
                         const Output& output, const std::vector<TaskNumber>& only) {
  os::install_stop_signals();
  const bool through = record.kind == "command";
  const Show show = output.is_json() ? Show::notes : through ? Show::output : Show::all;
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
  BERTH_ASSIGN(const auto unreachable, engine::may_run_remotely(context, *final));
  for (const auto& one : unreachable) print_error(to_text(one, final->name) + "\n");
  return conclude(context, *final, output);
}

Result<int> drive_detached(engine::Context& context, const store::RunRecord& record,
                           const Output& output) {
  BERTH_ASSIGN(const auto results, engine::start_in_background(context, record));
  output.print(results, [&] { return record.name + "\n"; });
  output.hint(fmt::format("follow it with: berth logs -f {}; wait for it with: berth wait {}\n",
                          record.name, record.name));
  return 0;
}

}  // namespace berth::cli
