// berth run, berth resume, berth stop: what moves a run.
#include "berth/run/runner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <variant>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/auptimizer.h"
#include "berth/cli/commands.h"
#include "berth/cli/detach.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/json_output.h"
#include "berth/cli/run_plan.h"
#include "berth/cli/screen.h"
#include "berth/cli/table.h"
#include "berth/cli/trials_view.h"
#include "berth/exec/fields.h"
#include "berth/experiment/auptimizer.h"
#include "berth/run/elsewhere.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLargestInput = 16U << 20;

bool selects(const Arguments& arguments) {
  return !(arguments.slot_sizes.empty() && arguments.gpu_mem_min.empty() &&
           arguments.policy.empty() && arguments.objective.empty() && arguments.require.empty());
}

/// As the command line says; unchanged where it does not.
Status apply_selection(const Arguments& arguments, machine::DeviceSelection& selection) {
  const auto set = [](std::string_view flag, const std::string& text, auto& value,
                      const auto& read) -> Status {
    if (text.empty()) return {};
    const auto found = read(text);
    if (!found) return fail(ErrorKind::usage, "{}: {}", flag, found.error().message);
    value = *found;
    return {};
  };
  const auto names = [](std::string_view text) -> Result<std::vector<std::string>> {
    std::vector<std::string> required;
    BERTH_TRY(machine::add_required(text, required));
    return required;
  };
  const auto bytes = [](std::string_view text) { return parse_amount(name(Known::gpu_mem), text); };
  if (!arguments.slot_sizes.empty()) selection.slot_sizes = arguments.slot_sizes;
  BERTH_TRY(set("--gpu-mem-min", arguments.gpu_mem_min, selection.memory_min, bytes));
  BERTH_TRY(set("--gpu-policy", arguments.policy, selection.policy, machine::policy_named));
  BERTH_TRY(
      set("--gpu-objective", arguments.objective, selection.objective, machine::objective_named));
  return set("--gpu-require", arguments.require, selection.required, names);
}

Status apply_options(const Arguments& arguments, experiment::Program& program) {
  if (!arguments.name.empty()) {
    if (!experiment::valid_name(arguments.name))
      return fail(ErrorKind::usage,
                  "--name: wanted letters, digits, '_', '.' and '-', at most 64, found '{}'",
                  clip(arguments.name));
    program.name = arguments.name;
  }
  for (const auto& [resource, text] : arguments.resources) {
    if (!valid_resource_name(resource))
      return fail(ErrorKind::usage, "--resource: '{}' is no name of a resource", clip(resource));
    auto amount = parse_amount(resource, text);
    if (!amount)
      return std::unexpected(within(fmt::format("--{}", resource), std::move(amount).error()));
    program.resources.set(resource, *amount);
  }
  BERTH_TRY(apply_selection(arguments, program.selection));
  if (const auto implied = machine::imply_devices(program.selection, program.resources); !implied)
    return fail(ErrorKind::usage, "{}", implied.error().message);
  if (!arguments.timeout.empty()) {
    auto timeout = parse_duration(arguments.timeout);
    if (!timeout) return std::unexpected(within("--timeout", std::move(timeout).error()));
    if (*timeout <= Duration(0))
      return fail(ErrorKind::usage, "--timeout: wanted more than 0, found {}", arguments.timeout);
    program.timeout = *timeout;
  }
  if (!arguments.gpu_mem_over.empty()) {
    auto over = exec::gpu_mem_over_named(arguments.gpu_mem_over);
    if (!over) return fail(ErrorKind::usage, "--gpu-mem-over: {}", over.error().message);
    program.gpu_mem_over = *over;
  }
  if (!arguments.retain.empty()) {
    auto retain = parse_duration(arguments.retain);
    if (!retain) return std::unexpected(within("--retain", std::move(retain).error()));
    program.retain = *retain;
  }
  if (!arguments.enforce.empty()) program.enforce = arguments.enforce == "required";
  if (arguments.retries > 0) program.retries = arguments.retries;
  if (arguments.priority != 0) program.priority = arguments.priority;
  if (arguments.parallel > 0) program.parallel = arguments.parallel;
  return {};
}

experiment::Program program_of_command(const Arguments& arguments) {
  experiment::Program program;
  program.kind = "command";
  program.run.words = arguments.words;
  program.resources.set(Known::cpu, 1000);
  const std::string& first = arguments.words.front();
  std::string name;
  for (const char c : first.substr(first.find_last_of('/') + 1))
    if (experiment::valid_name(name + c)) name += c;
  program.name = name.empty() ? "run" : name;
  return program;
}

struct Prepared {
  std::variant<experiment::Program, run::FlowProgram> program;
  std::string directory;
  std::string file;
  run::Whereabouts where = {};
};

/// A flow's steps say for themselves what they take.
Result<run::FlowProgram> flow_program(const Arguments& arguments, std::string text,
                                      const std::string& file, run::Whereabouts& where) {
  run::FlowProgram program;
  program.text = std::move(text);
  program.file = file;
  if (!arguments.resources.empty() || selects(arguments) || !arguments.enforce.empty())
    return fail(ErrorKind::usage,
                "{}: what a task of a flow takes stands with its step, as resources", file);
  experiment::Program options;
  BERTH_TRY(apply_options(arguments, options));
  BERTH_ASSIGN(const auto flow, run::read_flow(program));
  where.names = flow.clusters;
  program.name = options.name.empty() ? flow.name : options.name;
  program.parallel = options.parallel;
  program.outlive = true;
  program.retain = options.retain;
  program.priority = options.priority;
  if (!arguments.timeout.empty()) program.timeout = options.timeout;
  if (arguments.retries > 0) program.retries = arguments.retries;
  if (!arguments.gpu_mem_over.empty()) program.gpu_mem_over = options.gpu_mem_over;
  if (!arguments.cache.empty()) program.cache = *run::cache_mode(arguments.cache);
  return program;
}

/// The prepared directory is the file's folder, and becomes where its trials start.
Result<experiment::Program> trials_program(os::Env& env, const Arguments& arguments,
                                           std::string_view text, Prepared& prepared) {
  const std::string& file = prepared.file;
  if (!arguments.cache.empty())
    return fail(ErrorKind::usage, "--cache: only the tasks of a flow are cached, and {} is none",
                file.empty() ? "a command" : file);
  experiment::Program program;
  if (file.empty()) {
    program = program_of_command(arguments);
  } else if (experiment::is_auptimizer(text)) {
    BERTH_ASSIGN(auto read, from_auptimizer(env, text, file, prepared.directory));
    program = std::move(read.program);
    if (!read.cluster.empty() && !read.machines && arguments.clusters.empty())
      return fail(
          ErrorKind::invalid,
          "{}: resource: which machines? Name them as {}_mapping in .aup/env.ini, or run it "
          "with --cluster NAME",
          file, read.cluster.substr(0, read.cluster.find(':')));
    prepared.where.own = read.cluster;
    if (!read.cluster.empty())
      prepared.where.names = {read.cluster.substr(0, read.cluster.find(':'))};
  } else {
    BERTH_ASSIGN(program, experiment::read_program(text, file));
    prepared.where.names = program.clusters;
  }
  BERTH_TRY(apply_options(arguments, program));
  program.outlive = true;
  return program;
}

/// The points that stand in a file of their own.
Status read_sequence(os::Env& env, const std::string& directory, experiment::Program& program) {
  const std::string& file = program.search.file;
  if (file.empty()) return {};
  BERTH_ASSIGN(const std::string text,
               env.read_file(file.front() == '/' ? file : directory + "/" + file, kLargestInput));
  return experiment::read_points(text, file, program);
}

/// The trials of an earlier run that this program could have proposed itself, the latest of them.
Status begin_with(run::Site& site, const std::string& name, experiment::Program& program) {
  BERTH_ASSIGN(const auto run, site.store->find_run(name));
  if (!adaptive(program.search))
    return fail(ErrorKind::usage,
                "--warm-start: this search learns from no trial; methods tpe, halving, hyperband "
                "and external do");
  BERTH_ASSIGN(const auto tasks, site.store->tasks(run.id));
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    if (program.earlier.size() == experiment::kMostEarlier) break;
    if (task->state != store::TaskState::done) continue;
    if (experiment::could_begin_with(program, task->params, task->metrics))
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

Result<Prepared> prepare(os::Env& env, const Arguments& arguments) {
  Prepared prepared{.program = {}, .directory = {}, .file = arguments.target};
  std::string text, folder = ".";
  if (arguments.words.empty()) {
    BERTH_ASSIGN(text, env.read_file(prepared.file, kLargestInput));
    // What comes through a pipe has no folder: the one we are in stands for it.
    if (const auto path = env.real_path(prepared.file))
      folder = path->substr(0, path->find_last_of('/') + 1);
  }
  BERTH_ASSIGN(prepared.directory, env.real_path(folder));
  if (!prepared.file.empty() && run::is_flow(text)) {
    BERTH_ASSIGN(prepared.program,
                 flow_program(arguments, std::move(text), prepared.file, prepared.where));
  } else {
    BERTH_ASSIGN(auto program, trials_program(env, arguments, text, prepared));
    BERTH_TRY(read_sequence(env, prepared.directory, program));
    prepared.program = std::move(program);
  }
  if (!arguments.clusters.empty()) prepared.where = {arguments.clusters, ""};
  prepared.where.confirmed = arguments.send_large;
  return prepared;
}

/// What other machines have is known when they answer.
Status check(run::Site& site, Prepared& prepared) {
  const bool here = prepared.where.names.empty();
  BERTH_TRY(run::check_clusters(*site.env, prepared.where));
  if (auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    return run::check_flow(site, *flow, prepared.directory, here);
  auto& program = std::get<experiment::Program>(prepared.program);
  if (!here && program.passive)
    return fail(ErrorKind::usage, "--cluster: passive trials run wherever whoever asks is");
  if (!here) return {};
  BERTH_TRY(run::divide_gpus(site, program));
  return run::check_program(site, program, prepared.directory, prepared.file);
}

Result<int> show_plan_of(run::Site& site, const Prepared& prepared, bool json) {
  if (const auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    return show_flow_plan(site, *flow, prepared.directory, json);
  return show_plan(site, std::get<experiment::Program>(prepared.program), json);
}

Result<store::RunRecord> submit(run::Site& site, const Prepared& prepared) {
  if (const auto* flow = std::get_if<run::FlowProgram>(&prepared.program))
    return run::submit(site, *flow, prepared.directory);
  return run::submit(site, std::get<experiment::Program>(prepared.program), prepared.directory);
}

/// The steps, and what failed of them.
Status print_flow(const store::RunRecord& record, const std::vector<store::TaskRecord>& tasks) {
  BERTH_ASSIGN(const auto flow, flow_of(record));
  print(steps_table(step_counts(flow, record, tasks)));
  std::size_t rows = 0;
  for (const auto& task : tasks) {
    if (task.state != store::TaskState::failed || ++rows > kMostRows) continue;
    print(fmt::format("{}/{} failed: {}; berth why {}/{}\n", record.name, task.label, task.cause,
                      record.name, task.label));
  }
  if (rows > kMostRows) print(fmt::format("… all {}: berth show {}\n", rows, record.name));
  return {};
}

Status print_trials(const store::RunRecord& record, const std::vector<store::TaskRecord>& tasks) {
  BERTH_ASSIGN(const auto program, experiment::from_json_text(record.spec_json));
  print(trials_table(sorted_trials(tasks, program), program, kMostRows));
  if (tasks.size() > kMostRows)
    print(fmt::format("… all {}: berth show {}\n", tasks.size(), record.name));
  return {};
}

/// What a finished run leaves on stdout, and its exit code.
Result<int> conclude(os::Env& env, run::Site& site, const store::RunRecord& record, bool json) {
  const bool through = record.kind == "command";
  const bool stopped = record.state == store::RunState::stopped;
  if (json || !through) {
    BERTH_ASSIGN(const auto tasks, site.store->tasks(record.id));
    if (json) {
      BERTH_ASSIGN(auto used, site.store->usage(record.id));
      print(show_json({record, state_now(env, record), std::move(used)}, tasks));
    } else {
      BERTH_TRY(record.kind == "flow" ? print_flow(record, tasks) : print_trials(record, tasks));
      print(fmt::format("{}  {}: {}{}\n", record.name, store::name(record.state),
                        counts_text(record.counts),
                        record.error.empty() ? "" : "; " + record.error));
      BERTH_ASSIGN(const auto program, program_of(record));
      if (const auto* best = best_task(tasks, program)) print(best_line(record, *best, program));
    }
  } else if (record.state == store::RunState::failed) {
    BERTH_ASSIGN(const auto task, find_task(site, record, "1"));
    print_error(fmt::format("berth: {} failed: {}; berth why {}/1\n", record.name, task.cause,
                            record.name));
  }
  if (stopped) {
    print_error(fmt::format("stopped; go on with: berth resume {}\n", record.name));
    return exit_code(ErrorKind::interrupted);
  }
  return record.state == store::RunState::done ? 0 : 1;
}

/// Of machines that did not answer; whether there are any.
Result<bool> tell_what_may_run(run::Site& site, const store::RunRecord& record) {
  BERTH_ASSIGN(const auto all, run::may_run_elsewhere(site, record));
  for (const auto& one : all) print_error(run::to_text(one, record.name) + "\n");
  return !all.empty();
}

/// The person at the terminal, if there is one.
bool says_yes(os::Env& env, const std::string& question) {
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

/// As long as what it must not do unasked is answered with yes.
Result<store::RunRecord> drive_and_ask(os::Env& env, run::Site& site, const std::string& name,
                                       Show show, const std::vector<TaskNumber>& only) {
  for (;;) {
    Screen screen(env, name, show);
    auto final = run::drive(site, name, screen, only);
    screen.finish();
    if (final || final.error().kind != ErrorKind::unconfirmed) return final;
    const std::string question = final.error().message + ". Send it?";
    if (show == Show::notes || !says_yes(env, question)) return final;
    BERTH_ASSIGN(const auto record, site.store->find_run(name));
    BERTH_TRY(run::confirm_sending(site, record));
  }
}

Result<int> drive_to_end(os::Env& env, run::Site& site, const store::RunRecord& record, bool json,
                         const std::vector<TaskNumber>& only = {}) {
  os::install_stop_signals();
  const bool through = record.kind == "command";
  const Show show = json ? Show::notes : through ? Show::output : Show::all;
  auto final = drive_and_ask(env, site, record.name, show, only);
  if (!final) {
    const bool driven_elsewhere = final.error().kind == ErrorKind::busy;
    const bool unasked = final.error().kind == ErrorKind::unconfirmed;
    if (!driven_elsewhere)
      final.error().message +=
          fmt::format("; {}go on with: berth resume {}{}",
                      unasked ? "after that, or to send it all the same, " : "",
                      unasked ? "--send-large " : "", record.name);
    return std::unexpected(final.error());
  }
  BERTH_TRY(tell_what_may_run(site, *final));
  return conclude(env, site, *final, json);
}

/// What a person who has edited a flow's file wants to know: it goes on as it was submitted.
Status note_edited(os::Env& env, const store::RunRecord& record) {
  if (record.kind != "flow") return {};
  BERTH_ASSIGN(const auto now, run::edited(env, record));
  if (now)
    print_error(
        fmt::format("{} goes on as it was submitted; {} was edited since: take that with "
                    "berth retry --file {}\n",
                    record.name, now->file, record.name));
  return {};
}

/// The run's specification as its file is now; "" where that is the one it has.
Result<std::string> spec_of_file(os::Env& env, run::Site& site, const store::RunRecord& record) {
  if (record.kind != "flow")
    return fail(ErrorKind::usage,
                "--file: {} is no flow: its parameters are drawn; start a new run", record.name);
  BERTH_ASSIGN(auto now, run::edited(env, record));
  if (!now) return std::string();
  return run::resubmitted(site, record, *std::move(now));
}

/// A runner in the background; what is left to say.
Result<int> detach(os::Env& env, run::Site& site, const store::RunRecord& record, bool json) {
  BERTH_TRY(start_detached(env, site, record));
  if (json) {
    BERTH_ASSIGN(const auto tasks, site.store->tasks(record.id));
    BERTH_ASSIGN(const auto now, site.store->find_run(record.name));
    print(show_json({now, state_now(env, now)}, tasks));
    return 0;
  }
  print(record.name + "\n");
  print_error(fmt::format("follow it with: berth logs -f {}; wait for it with: berth wait {}\n",
                          record.name, record.name));
  return 0;
}

}  // namespace

Result<int> run_command(os::Env& env, const Arguments& arguments) {
  if (arguments.target.empty() == arguments.words.empty())
    return fail(ErrorKind::usage, "wanted either a file or -- and a command; see berth run --help");
  BERTH_ASSIGN(Prepared prepared, prepare(env, arguments));
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  if (!arguments.warm_start.empty()) {
    auto* program = std::get_if<experiment::Program>(&prepared.program);
    if (program == nullptr) return fail(ErrorKind::usage, "--warm-start: a flow searches nothing");
    BERTH_TRY(begin_with(site, arguments.warm_start, *program));
  }
  BERTH_TRY(check(site, prepared));
  const auto* program = std::get_if<experiment::Program>(&prepared.program);
  const bool takes_folder = program != nullptr && program->kind != "command";
  if (arguments.plan_only && takes_folder && !prepared.where.names.empty())
    return show_sending(env, prepared.directory, prepared.where.names.front(), arguments.json);
  if (arguments.plan_only && !prepared.where.names.empty())
    return fail(ErrorKind::usage,
                "--plan: what {} has room for is known when it answers: "
                "berth cluster probe {}",
                prepared.where.names.front(), prepared.where.names.front());
  if (arguments.plan_only) return show_plan_of(site, prepared, arguments.json);
  BERTH_ASSIGN(const auto record, submit(site, prepared));
  BERTH_TRY(run::keep_clusters(site, record, prepared.where));
  if (arguments.detach) return detach(env, site, record, arguments.json);
  return drive_to_end(env, site, record, arguments.json);
}

Result<int> resume_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  BERTH_ASSIGN(const auto record, site.store->find_run(arguments.target));
  if (record.state == store::RunState::done || record.state == store::RunState::failed) {
    const store::Counts& counts = record.counts;
    // A flow can fail before all of its tasks are known.
    const bool told = record.state == store::RunState::done || counts.failed > 0;
    if (told && counts.waiting + counts.running + counts.stopped == 0) {
      print_error(fmt::format("{} is finished already: {}, {}\n", record.name,
                              store::name(record.state), counts_text(counts)));
      return 0;
    }
  }
  BERTH_TRY(note_edited(env, record));
  if (arguments.send_large) BERTH_TRY(run::confirm_sending(site, record));
  if (arguments.detach) return detach(env, site, record, arguments.json);
  return drive_to_end(env, site, record, arguments.json);
}

Result<int> retry_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  BERTH_ASSIGN(const auto record, site.store->find_run(arguments.target));
  if (arguments.failed && record.kind == "flow")
    return fail(ErrorKind::usage, "--failed: what is left of {} waits for what failed: retry all",
                record.name);
  std::string spec;
  if (arguments.take_file) {
    BERTH_ASSIGN(spec, spec_of_file(env, site, record));
  }
  const bool all = arguments.all || arguments.take_file;
  BERTH_ASSIGN(const auto reopened, run::reopen(site, arguments.target, all, spec));
  if (reopened.empty() && !all)
    print_error(fmt::format("nothing of {} has failed\n", arguments.target));
  if (!arguments.failed) return resume_command(env, arguments);
  if (reopened.empty()) return 0;
  if (arguments.send_large) BERTH_TRY(run::confirm_sending(site, record));
  return drive_to_end(env, site, record, arguments.json, reopened);
}

/// What the agents of a runner that died still run, and what they keep, ends as with its runner.
Result<int> stop_agents(os::Env& env, run::Site& site, const store::RunRecord& record) {
  os::install_stop_signals();
  BERTH_TRY(env.signal_process(env.self(), SIGTERM));
  Screen screen(env, record.name, Show::nothing);
  BERTH_ASSIGN(const auto now, run::drive(site, record.name, screen));
  print_error(now.state == store::RunState::stopped
                  ? fmt::format("{} stopped; go on with: berth resume {}\n", now.name, now.name)
                  : fmt::format("{} is {}; its alloc is free\n", now.name, store::name(now.state)));
  BERTH_ASSIGN(const bool may_run, tell_what_may_run(site, now));
  return may_run ? exit_code(ErrorKind::busy) : 0;
}

/// Machines that did not answer when it was stopped may do so now.
Result<int> stop_elsewhere(os::Env& env, run::Site& site, const store::RunRecord& record) {
  os::install_stop_signals();
  print_error(fmt::format("{} does not run: it is {}\n", record.name, state_now(env, record)));
  BERTH_ASSIGN(const auto before, run::may_run_elsewhere(site, record));
  if (before.empty()) return 0;
  print_error("ending what may still run elsewhere\n");
  BERTH_TRY(run::end_what_was_left(site, record.name));
  BERTH_ASSIGN(const bool may_run, tell_what_may_run(site, record));
  if (may_run) return exit_code(ErrorKind::busy);
  print_error("nothing of it runs any more\n");
  return 0;
}

Result<int> stop_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  BERTH_ASSIGN(const auto record, site.store->find_run(arguments.target));
  if (drives_elsewhere(env, record))
    return fail(
        ErrorKind::busy,
        "{} is driven on {}: stop it there, or, when that is gone, take it over: berth resume {}",
        record.name, record.runner_host, record.name);
  const std::string state = state_now(env, record);
  if (state == "interrupted" || (state == "failed" && !record.alloc.empty()))
    return stop_agents(env, site, record);
  if (state != "running") return stop_elsewhere(env, site, record);
  const os::ProcessIdentity runner{static_cast<pid_t>(record.runner_pid), record.runner_started_at};
  if (const auto sent = env.signal_process(runner, SIGTERM);
      !sent && sent.error().kind != ErrorKind::not_found)
    return std::unexpected(sent.error());
  while (env.alive(runner)) {
    const Mono soon = env.now() + std::chrono::milliseconds(20);
    BERTH_TRY(env.wait({}, soon));
    BERTH_ASSIGN(const auto now, site.store->find_run(arguments.target));
    if (now.state != store::RunState::running) break;
  }
  print_error(fmt::format("{} stopped; go on with: berth resume {}\n", record.name, record.name));
  BERTH_ASSIGN(const bool may_run, tell_what_may_run(site, record));
  return may_run ? exit_code(ErrorKind::busy) : 0;
}

}  // namespace berth::cli
