// berth run: a file or a command line becomes a run.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/cli/commands/follow.h"
#include "berth/cli/commands/run_options.h"
#include "berth/engine/runs/batch.h"
#include "berth/engine/runs/run_plan.h"
#include "berth/os/standard_input.h"
#include "berth/render/runs/batch.h"
#include "berth/render/runs/run_plan.h"

namespace berth::cli {
namespace {

void print_note(const std::string& note) {
  print_error(fmt::format("note: {}\n", note));
}

struct CheckOptions {
  RunOptions run;

  void add_to(Options& options) {
    run.output.add_to(options);
    options.value("FILE", run.file, "Experiment or flow (YAML)").required();
    options.group("Flow options");
    run.flow.add_to(options);
    options.example("berth check flow.yaml");
  }
};

Result<int> check_file(os::Env& env, const CheckOptions& options) {
  BERTH_ASSIGN(const auto request, options.run.request(env));
  return options.run.output.print_or_fail(engine::check_file(env, request, print_note));
}

/// A run for each row of a table. Nothing is submitted before everything is checked.
Result<int> submit_batch(os::Env& env, const RunOptions& options) {
  if (!options.words.empty() || options.detach)
    return fail(ErrorKind::usage,
                "--rows: runs a flow's file for each row, and follows the runs to their end");
  BERTH_ASSIGN(auto request, options.request(env));
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(auto rows,
               engine::read_batch(context, {std::move(request), options.rows, options.flow.set},
                                  print_note));
  if (options.plan) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      options.output.note(fmt::format("{}row {}:\n", i > 0 ? "\n" : "", rows[i].name));
      BERTH_ASSIGN(const auto plan, engine::plan_of(context, rows[i].submission));
      options.output.print(plan);
    }
    return 0;
  }
  BERTH_ASSIGN(const auto batch, engine::run_batch(context, rows, print_note, print_error));
  print_error(render::next_commands(batch));
  options.output.print(batch);
  if (batch.is_interrupted) return exit_code(ErrorKind::interrupted);
  const auto any = [&](const auto& is) { return std::ranges::any_of(batch.runs, is); };
  if (any([](const auto& each) { return each.run.state == "failed"; })) return 1;
  return any([](const auto& each) { return each.run.state != "done"; }) ? exit_code(ErrorKind::busy)
                                                                        : 0;
}

/// Notes once that no task reads the data that waits on standard input.
class UnreadInput {
 public:
  UnreadInput(const RunOptions& options, const engine::Submission& submission) {
    const auto* program = submission.trials();
    constexpr std::array<std::string_view, 3> kOwn{"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"};
    looks_ = std::ranges::find(kOwn, options.file) == kOwn.end() &&
             (program == nullptr || (!program->passive && program->input != "-"));
  }

  void look() {
    if (!looks_ || !os::standard_input_has_data()) return;
    looks_ = false;
    print_error(
        "note: standard input has data, but the input of tasks is empty; use --stdin - or --stdin "
        "FILE to pass it to them\n");
  }

 private:
  bool looks_ = false;
};

Result<int> submit_and_follow(os::Env& env, const RunOptions& options) {
  if (!options.rows.empty()) return submit_batch(env, options);
  if (options.file.empty() == options.words.empty())
    return fail(ErrorKind::usage,
                "expected either a file or -- and a command; see berth run --help");
  BERTH_ASSIGN(const auto request, options.request(env));
  BERTH_ASSIGN(auto submission, engine::read_submission(env, request));
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_TRY(engine::check(context, submission, print_note));
  if (options.plan) {
    return options.output.print_or_fail(engine::plan_of(context, submission));
  }
  BERTH_ASSIGN(const auto record, engine::submit(context, submission, print_note));
  UnreadInput unread(options, submission);
  unread.look();
  if (options.detach) return drive_detached(context, record, options.output);
  auto code = drive_to_end(env, context, record, options.output);
  unread.look();
  return code;
}

}  // namespace

Command run_command() {
  return command("run", "Start a run from a file or a command, and follow it", submit_and_follow);
}

Command check_command() {
  return command("check", "Validate a file without running it", check_file);
}

}  // namespace berth::cli
