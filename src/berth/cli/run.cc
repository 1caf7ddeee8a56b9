// berth run: a file or a command line becomes a run.
#include <algorithm>
#include <array>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/cli/batch.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/follow.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/run_options.h"
#include "berth/cli/run_plan.h"
#include "berth/engine/submission.h"
#include "berth/os/standard_input.h"

namespace berth::cli {
namespace {

void print_note(const std::string& note) {
  print_error(fmt::format("note: {}\n", note));
}

Result<engine::Submission> read_submission(os::Env& env, const RunOptions& options) {
  BERTH_ASSIGN(const auto request, options.request(env));
  return engine::read_submission(env, request);
}

Result<int> show_plan_of(run::Context& context, const engine::Submission& submission, bool json) {
  if (const auto* flow = submission.flow())
    return show_flow_plan(context, *flow, submission.directory, submission.missing_images, json);
  return show_plan(context, *submission.trials(), json);
}

struct CheckOptions {
  RunOptions run;

  void add_to(Options& options) {
    options.json(run.json);
    options.value("FILE", run.file, "Experiment or flow (YAML)").required();
    options.group("Flow options");
    run.flow.add_to(options);
    options.example("berth check flow.yaml");
  }
};

Result<int> check_file(os::Env& env, const CheckOptions& options) {
  BERTH_ASSIGN(auto submission, read_submission(env, options.run));
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_TRY(engine::check(context, submission, print_note));
  const bool is_flow = submission.flow() != nullptr;
  if (options.run.json) {
    print(check_json(submission.file, is_flow ? "flow" : "experiment"));
    return 0;
  }
  print(fmt::format("{}: {}: valid; to see what would run: berth run --plan {}\n", submission.file,
                    is_flow ? "a flow" : "an experiment", submission.file));
  return 0;
}

/// What each row's run would do, in the order of the rows; as JSON a line each.
Result<int> show_plans(run::Context& context, const std::vector<engine::Submission>& all,
                       const flow::Table& table, bool json) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!json) print(fmt::format("{}row {}:\n", i > 0 ? "\n" : "", table.rows[i].front()));
    BERTH_TRY(show_plan_of(context, all[i], json));
  }
  return 0;
}

/// A run for each row of a table. Nothing is submitted before everything is checked.
Result<int> submit_batch(os::Env& env, const RunOptions& options) {
  if (!options.words.empty() || options.detach)
    return fail(ErrorKind::usage,
                "--rows: runs a flow's file for each row, and follows the runs to their end");
  BERTH_ASSIGN(const auto rows, options_of_rows(env, options));
  BERTH_ASSIGN(const std::string file, env.read_file(options.file, flow::kMostFlowBytes));
  // What cannot be read is told of as it is without rows.
  if (Field::parse(file, options.file) && !run::is_flow(file))
    return fail(
        ErrorKind::usage,
        "--rows: {} is not a flow; for an experiment use search: {{method: sequence, file: …}}",
        options.file);
  BERTH_ASSIGN(const std::string text, env.read_file(options.rows, flow::kMostTableBytes));
  BERTH_ASSIGN(const auto table, flow::read_table(text, options.rows));
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  std::vector<engine::Submission> all;
  std::vector<run::FlowProgram> programs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto submission = read_submission(env, rows[i]);
    if (!submission && submission.error().kind == ErrorKind::usage)
      return std::unexpected(submission.error());
    const auto row = fmt::format("{}, row {}", options.rows, clip(table.rows[i].front()));
    if (!submission) return std::unexpected(within(row, std::move(submission).error()));
    // The rows have the same notes.
    const engine::Note note = i == 0 ? engine::Note(print_note) : [](const std::string&) {};
    if (auto checked = engine::check(context, *submission, note); !checked)
      return std::unexpected(within(row, std::move(checked).error()));
    programs.push_back(*submission->flow());
    all.push_back(*std::move(submission));
  }
  BERTH_TRY(check_rows(programs, table));
  if (options.plan) return show_plans(context, all, table, options.json);
  std::vector<store::RunRecord> records;
  for (auto& submission : all) {
    const engine::Note note =
        records.empty() ? engine::Note(print_note) : [](const std::string&) {};
    BERTH_ASSIGN(records.emplace_back(), engine::submit(context, submission, note));
  }
  return drive_batch(env, context, records, options.json);
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

/// What a run would do: on this machine where its tasks would run, on clusters which files would be
/// sent.
Result<int> show_plan_or_sending(os::Env& env, run::Context& context,
                                 const engine::Submission& submission, bool json) {
  const auto& clusters = submission.clusters.names;
  if (clusters.empty()) return show_plan_of(context, submission, json);
  const auto* program = submission.trials();
  if (program != nullptr && program->kind != "command" && program->remote_directory.empty())
    return show_sending(env, submission.directory, clusters, json);
  return fail(
      ErrorKind::usage,
      "--plan: the resources of other machines are not known yet: run berth cluster probe {}",
      join(clusters, " "));
}

Result<int> submit_and_follow(os::Env& env, const RunOptions& options) {
  if (!options.rows.empty()) return submit_batch(env, options);
  if (options.file.empty() == options.words.empty())
    return fail(ErrorKind::usage,
                "expected either a file or -- and a command; see berth run --help");
  BERTH_ASSIGN(auto submission, read_submission(env, options));
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_TRY(engine::check(context, submission, print_note));
  if (options.plan) return show_plan_or_sending(env, context, submission, options.json);
  BERTH_ASSIGN(const auto record, engine::submit(context, submission, print_note));
  UnreadInput unread(options, submission);
  unread.look();
  if (options.detach) return drive_detached(env, context, record, options.json);
  auto code = drive_to_end(env, context, record, options.json);
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
