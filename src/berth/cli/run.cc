// berth run: a file or a command line becomes a run.
#include "berth/run/runner.h"

#include <algorithm>
#include <array>
#include <variant>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/cli/auptimizer.h"
#include "berth/cli/batch.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/follow.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/run_options.h"
#include "berth/cli/run_plan.h"
#include "berth/experiment/auptimizer.h"
#include "berth/machine/enclosing_task.h"
#include "berth/os/standard_input.h"
#include "berth/run/clusters.h"
#include "berth/run/flow_plan.h"
#include "berth/run/images.h"
#include "berth/run/prepare.h"
#include "berth/run/search_input.h"

namespace berth::cli {
namespace {

struct Prepared {
  std::variant<experiment::Program, run::FlowProgram> program;
  std::string directory;
  std::string file;
  run::ClusterChoice where = {};
  flow::Words missing = {};  // images that are not here
  bool from_file = true;     // where it runs
};

/// A flow as a program. Its steps name their resources themselves, so that these options are
/// refused.
Result<run::FlowProgram> flow_program(os::Env& env, const RunOptions& options, std::string text,
                                      const std::string& file, const std::string& directory,
                                      run::ClusterChoice& where) {
  run::FlowProgram program;
  BERTH_ASSIGN(program.options, options.flow.read(env));
  program.text = std::move(text);
  program.file = file;
  BERTH_TRY(run::take_parts(env, directory, program));
  if (options.amounts.any() || options.gpus.any() || !options.enforce.empty())
    return fail(ErrorKind::usage,
                "{}: declare the resources of a flow's task at its step, with `resources`", file);
  if (!options.input.empty())
    return fail(
        ErrorKind::usage,
        "--stdin: {} is a flow, whose tasks read files: declare them at the step as `in`:", file);
  experiment::Program given;
  BERTH_TRY(run::keep_reading(program));
  const flow::Flow& flow = program.reading->flow;
  given.labels = flow.labels;
  given.notify = flow.notify;
  BERTH_TRY(options.apply(given));
  program.labels = std::move(given.labels);
  program.notify = std::move(given.notify);
  where.names = flow.clusters;
  program.name = given.name.empty() ? flow.name : given.name;
  program.parallel = given.parallel;
  program.outlive = true;
  program.retain = given.retain;
  program.priority = given.priority;
  if (!options.timeout.empty()) program.timeout = given.timeout;
  if (options.retries > 0) program.retries = options.retries;
  if (!options.allow_failures.empty()) program.allow_failures = given.allow_failures;
  if (!options.gpu_mem_over.empty()) program.gpu_mem_over = given.gpu_mem_over;
  program.image = options.image;
  program.overwrite = options.flow.overwrite;
  if (!options.cache.empty()) program.cache = *run::cache_mode(options.cache);
  return program;
}

/// An experiment or a command as a program. `prepared.directory` is the file's folder, and becomes
/// the directory in which its trials start.
Result<experiment::Program> trials_program(os::Env& env, const RunOptions& options,
                                           std::string_view text, Prepared& prepared) {
  const std::string& file = prepared.file;
  if (!options.image.empty())
    return fail(ErrorKind::usage,
                "--image: only the tasks of a flow run in containers, and {} is not a flow",
                file.empty() ? "a command" : file);
  if (!options.cache.empty())
    return fail(ErrorKind::usage,
                "--cache: only the tasks of a flow are cached, and {} is not a flow",
                file.empty() ? "a command" : file);
  if (options.flow.any())
    return fail(ErrorKind::usage,
                "targets, --set, --params, --force, --until, --only and --overwrite are for flows, "
                "and {} is not a flow",
                file.empty() ? "a command" : file);
  experiment::Program program;
  std::string input = options.input;
  if (!input.empty() && input != "-") {
    auto path = env.real_path(input);
    if (!path) return std::unexpected(within("--stdin", std::move(path).error()));
    input = *std::move(path);
  }
  if (file.empty()) {
    program = run::program_of_command(options.words);
  } else if (experiment::is_auptimizer(text)) {
    BERTH_ASSIGN(auto read,
                 from_auptimizer(env, text, file, prepared.directory, !options.clusters.empty()));
    program = std::move(read.program);
    if (!read.settings.empty() && read.cluster_names.empty() && options.clusters.empty())
      return fail(
          ErrorKind::invalid,
          "{}: resource: which machines? Name them as {}_mapping in .aup/env.ini, or run it "
          "with --cluster NAME",
          file, read.resource);
    prepared.where.own = read.clusters;
    prepared.where.names = read.cluster_names;
  } else {
    BERTH_ASSIGN(program, experiment::read_program(text, file));
    prepared.where.names = program.clusters;
  }
  BERTH_TRY(options.apply(program));
  if (!input.empty()) {
    if (program.passive)
      return fail(ErrorKind::usage, "--stdin: passive trials have no process that could read it");
    program.input = std::move(input);
    program.input_line = 0;
  }
  program.outlive = true;
  return program;
}

Result<Prepared> prepare(os::Env& env, const RunOptions& options) {
  Prepared prepared{.program = {}, .directory = {}, .file = options.file};
  std::string text, folder = ".";
  if (options.words.empty()) {
    BERTH_ASSIGN(text, env.read_file(prepared.file, flow::kMostFlowBytes));
    // What comes through a pipe has no folder: the one we are in stands for it.
    if (const auto path = env.real_path(prepared.file))
      folder = path->substr(0, path->find_last_of('/') + 1);
  }
  BERTH_ASSIGN(prepared.directory, env.real_path(folder));
  if (!prepared.file.empty() && run::is_flow(text)) {
    BERTH_ASSIGN(prepared.program, flow_program(env, options, std::move(text), prepared.file,
                                                prepared.directory, prepared.where));
  } else {
    BERTH_ASSIGN(auto program, trials_program(env, options, text, prepared));
    BERTH_TRY(run::read_sequence(env, prepared.directory, program));
    prepared.program = std::move(program);
  }
  prepared.from_file = options.clusters.empty();
  if (!prepared.from_file) prepared.where = {options.clusters, ""};
  prepared.where.confirmed = options.send_large;
  return prepared;
}

/// Checks what can be known before anything starts: what other machines have is known when they
/// answer.
Status check(run::Context& context, Prepared& prepared, bool noted = true) {
  const bool here = prepared.where.names.empty();
  if (auto status = run::check_clusters(*context.env, prepared.where); !status)
    return prepared.from_file
               ? std::unexpected(within(prepared.file + ": cluster", std::move(status).error()))
               : status;
  if (auto* flow = std::get_if<run::FlowProgram>(&prepared.program)) {
    BERTH_ASSIGN(const auto notes, run::check_flow(context, *flow, prepared.directory, here));
    if (noted)
      for (const auto& note : notes) print_error(fmt::format("note: {}\n", note));
    BERTH_ASSIGN(prepared.missing, run::find_images(context, *flow, prepared.directory, here));
    return {};
  }
  auto& program = std::get<experiment::Program>(prepared.program);
  if (noted)
    for (const auto& note : program.notes) print_error(fmt::format("note: {}\n", note));
  if (!here && program.passive)
    return fail(ErrorKind::usage, "--cluster: passive trials run where they are asked for");
  if (!here) return run::check_input_of(*context.env, program, prepared.directory, prepared.file);
  BERTH_TRY(run::divide_gpus(context, program));
  BERTH_TRY(run::divide_cores(context, program));
  return run::check_program(context, program, prepared.directory, prepared.file);
}

Result<int> show_plan_of(run::Context& context, const Prepared& prepared, bool json) {
  if (const auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    return show_flow_plan(context, *flow, prepared.directory, prepared.missing, json);
  return show_plan(context, std::get<experiment::Program>(prepared.program), json);
}

Result<store::RunRecord> submit(run::Context& context, const Prepared& prepared) {
  if (const auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    return run::submit(context, *flow, prepared.directory);
  return run::submit(context, std::get<experiment::Program>(prepared.program), prepared.directory);
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

/// Everything that is checked before a run starts, and no run.
Result<int> check_file(os::Env& env, const CheckOptions& options) {
  BERTH_ASSIGN(Prepared prepared, prepare(env, options.run));
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_TRY(check(context, prepared));
  const auto* program = std::get_if<run::FlowProgram>(&prepared.program);
  if (options.run.json) {
    print(check_json(prepared.file, program ? "flow" : "experiment"));
    return 0;
  }
  print(fmt::format("{}: {}: valid; to see what would run: berth run --plan {}\n", prepared.file,
                    program ? "a flow" : "an experiment", prepared.file));
  return 0;
}

/// Machines elsewhere fetch for themselves.
Status fetch_images(run::Context& context, Prepared& prepared) {
  auto* flow = std::get_if<run::FlowProgram>(&prepared.program);
  if (flow == nullptr || prepared.missing.empty()) return {};
  if (prepared.where.names.empty())
    return run::pull_images(context, *flow, prepared.missing, [](const std::string& line) {
      print_error(fmt::format("note: {}\n", line));
    });
  for (const auto& image : prepared.missing)
    print_error(
        fmt::format("note: image {} is not on this machine: the digests of its tasks contain its "
                    "name, and each machine uses the image of that name that it has\n",
                    image));
  return {};
}

/// What each row's run would do, in the order of the rows; as JSON a line each.
Result<int> show_plans(run::Context& context, const std::vector<Prepared>& all,
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
  std::vector<Prepared> all;
  std::vector<run::FlowProgram> programs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto prepared = prepare(env, rows[i]);
    if (!prepared && prepared.error().kind == ErrorKind::usage)
      return std::unexpected(prepared.error());
    const auto row = fmt::format("{}, row {}", options.rows, clip(table.rows[i].front()));
    if (!prepared) return std::unexpected(within(row, std::move(prepared).error()));
    if (auto checked = check(context, *prepared, i == 0); !checked)
      return std::unexpected(within(row, std::move(checked).error()));
    programs.push_back(std::get<run::FlowProgram>(prepared->program));
    all.push_back(*std::move(prepared));
  }
  BERTH_TRY(check_rows(programs, table));
  if (options.plan) return show_plans(context, all, table, options.json);
  std::vector<store::RunRecord> records;
  for (auto& prepared : all) {
    BERTH_TRY(fetch_images(context, prepared));
    BERTH_ASSIGN(records.emplace_back(), submit(context, prepared));
    BERTH_TRY(run::keep_clusters(context, records.back(), prepared.where));
  }
  return drive_batch(env, context, records, options.json);
}

/// Notes once that no task reads the data that waits on standard input.
class UnreadInput {
 public:
  UnreadInput(const RunOptions& options, const Prepared& prepared) {
    const auto* program = std::get_if<experiment::Program>(&prepared.program);
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
  BERTH_ASSIGN(Prepared prepared, prepare(env, options));
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  if (!options.warm_start.empty()) {
    auto* program = std::get_if<experiment::Program>(&prepared.program);
    if (program == nullptr)
      return fail(ErrorKind::usage, "--warm-start: only for experiments, and this is a flow");
    BERTH_TRY(run::begin_with(context, options.warm_start, *program));
  }
  BERTH_TRY(check(context, prepared));
  const auto* program = std::get_if<experiment::Program>(&prepared.program);
  const bool takes_folder =
      program != nullptr && program->kind != "command" && program->remote_directory.empty();
  if (options.plan && takes_folder && !prepared.where.names.empty())
    return show_sending(env, prepared.directory, prepared.where.names, options.json);
  if (options.plan && !prepared.where.names.empty())
    return fail(
        ErrorKind::usage,
        "--plan: the resources of other machines are not known yet: run berth cluster probe {}",
        join(prepared.where.names, " "));
  if (options.plan) return show_plan_of(context, prepared, options.json);
  if (auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    BERTH_TRY(run::check_protected(context, *flow, prepared.directory));
  BERTH_TRY(fetch_images(context, prepared));
  BERTH_ASSIGN(const auto record, submit(context, prepared));
  BERTH_TRY(run::keep_clusters(context, record, prepared.where));
  if (const auto note = machine::enclosing_task_note(env);
      !note.empty() && prepared.where.names.empty())
    print_error(fmt::format("note: {}: {}\n", record.name, note));
  UnreadInput unread(options, prepared);
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
