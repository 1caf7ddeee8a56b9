#include "berth/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "berth/base/text.h"

namespace berth::cli {
namespace {

constexpr const char* kVersion = "berth 0.1.0";

struct ResourceOption {
  const char* flag;
  const char* resource;
  const char* help;
};
constexpr std::array<ResourceOption, 6> kResourceOptions{{
    {"--cpu", "cpu", "cores, fractions allowed (default 1)"},
    {"--mem", "mem", "memory, such as 4G or 512MiB"},
    {"--disk", "disk", "space on the state directory's volume"},
    {"--gpu", "gpu", "GPUs: whole, or with one of the next two parts of so many"},
    {"--gpu-mem", "gpu_mem", "memory of a GPU that others may share, such as 10G"},
    {"--gpu-slots", "gpu_slots", "throughput slots of a GPU that others may share"},
}};

/// Which GPUs are accepted, and how those of a task are chosen among them.
void add_gpu_choice(CLI::App& run, Arguments& arguments) {
  run.add_option("--gpu-slot-sizes", arguments.slot_sizes,
                 "only GPUs with one of these numbers of slots, such as 13,31")
      ->delimiter(',')
      ->type_name("SLOTS")
      ->check(CLI::Range(1, 10'000));
  run.add_option("--gpu-mem-min", arguments.gpu_mem_min,
                 "only GPUs that have so much memory in all, such as 30G")
      ->type_name("AMOUNT");
  run.add_option("--gpu-policy", arguments.policy,
                 "which of several GPUs: packed (default), best-effort, simple, "
                 "static-dgx1-pascal, static-dgx1-volta, static-dgx2");
  run.add_option("--gpu-objective", arguments.objective, "sum (default), min or ring");
  run.add_option("--gpu-require", arguments.require,
                 "GPUs that must be among them: indices such as 0,2-5, or UUIDs");
}

void add_run(CLI::App& app, Arguments& arguments, std::vector<std::string>& custom) {
  auto* run = app.add_subcommand("run", "start a run and follow it: of a file, or of one command");
  run->add_option("FILE", arguments.target, "an experiment or a flow (YAML)");
  run->add_option("--name", arguments.name, "the run's name; its number is added");
  for (const auto& option : kResourceOptions)
    run->add_option_function<std::string>(
           option.flag,
           [&arguments, resource = option.resource](const std::string& value) {
             arguments.resources.emplace_back(resource, value);
           },
           option.help)
        ->type_name("AMOUNT");
  run->add_option("--resource", custom, "an amount of a name of your own, such as licence=1")
      ->type_name("NAME=AMOUNT");
  add_gpu_choice(*run, arguments);
  run->add_option("--enforce", arguments.enforce,
                  "where a machine cannot hold a task to its limits: 'required' does not run it "
                  "there, 'advisory' (the default) says so once")
      ->check(CLI::IsMember({"required", "advisory"}));
  run->add_option("--timeout", arguments.timeout, "time limit of each task, such as 10m");
  run->add_option(
      "--gpu-mem-over", arguments.gpu_mem_over,
      "what comes of a task that has more of a GPU than --gpu-mem: warn (default), kill");
  run->add_option("--retries", arguments.retries, "further attempts of a task that fails")
      ->check(CLI::Range(0, 1000));
  run->add_option("--retain", arguments.retain,
                  "keep an alloc for so long when the run fails, for berth retry, such as 10m");
  run->add_option("--priority", arguments.priority, "greater goes first")
      ->check(CLI::Range(-1000, 1000));
  run->add_option("--parallel", arguments.parallel, "tasks side by side at most")
      ->check(CLI::Range(1, 1'000'000));
  run->add_option("--cluster", arguments.clusters,
                  "where it runs, by names of berth cluster list: the first, and what of the "
                  "others helps; default: this machine")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME");
  run->add_option("--cache", arguments.cache,
                  "of a flow: on (default), off, read (keep nothing new) or write (take nothing)")
      ->check(CLI::IsMember({"off", "read", "write", "on"}));
  run->add_option("--warm-start", arguments.warm_start,
                  "let the search learn from the trials of this earlier run, too")
      ->type_name("RUN");
  run->add_flag("--detach", arguments.detach, "run in the background, and print the run's name");
  run->add_flag("--send-large", arguments.send_large,
                "send the experiment's folder to other machines also where it has more than 1 GiB "
                "or is a home directory");
  run->add_flag(
         "--plan", arguments.plan_only,
         "show how many tasks would run side by side, where, and why no more; with --cluster "
         "what of the experiment's folder would be sent; run nothing")
      ->excludes("--detach");
  run->footer(
      "Examples:\n"
      "  berth run sweep.yaml\n"
      "  berth run examples/flow/licences.yaml\n"
      "  berth run --cpu 2 --mem 4G --timeout 1h -- ./train.py --lr 0.1\n"
      "  berth run --gpu 2 --gpu-mem-min 30G --gpu-objective min -- ./train.py\n"
      "  berth run --cluster lab sweep.yaml\n"
      "  berth run --cluster lab --plan sweep.yaml     what of its folder would be sent\n"
      "The options beat the file. Ctrl-C stops the run; `berth resume RUN` goes on.");
}

void add_cluster(CLI::App& app, Arguments& arguments) {
  auto* cluster = app.add_subcommand("cluster", "the machines elsewhere that runs may go to");
  cluster->add_option("ACTION", arguments.action, "list, probe, add, remove or clean")
      ->required()
      ->check(CLI::IsMember({"list", "probe", "add", "remove", "clean"}));
  cluster->add_option("NAME", arguments.target, "the cluster; list and probe: all without it");
  cluster->add_option("MORE", arguments.targets,
                      "of add: hosts, each user@host[:port] or a name of your ssh config; else "
                      "further clusters");
  cluster->add_flag("--dry-run", arguments.dry_run, "of clean, of hosts: only say how much");
  cluster->add_option("--older-than", arguments.older_than,
                      "of clean, of hosts: what came there longer ago, such as 7d (default 30d)");
  cluster->add_option("--key", arguments.name, "of add: the key file of these hosts");
  cluster->footer(
      "Examples:\n"
      "  berth cluster add lab alice@10.0.0.7:2222 gpu-box --key ~/.ssh/lab\n"
      "  berth cluster probe lab hpc\n"
      "  berth run --cluster lab sweep.yaml\n"
      "  berth cluster clean lab --older-than 7d     removes from its hosts what nobody uses\n"
      "  berth cluster clean cloud     ends what dead runs have left running on EC2\n"
      "They stand in ~/.config/berth/clusters.yaml, or the file that BERTH_CLUSTERS names, which\n"
      "takes more than add writes: see docs/files.md.");
}

void add_compare(CLI::App& app, Arguments& arguments) {
  auto* compare = app.add_subcommand("compare", "what runs came to, side by side");
  compare->add_option("RUN", arguments.targets, "two or more, such as digits-3 digits-4")
      ->required()
      ->expected(2, 64);
  compare->add_option("--metric", arguments.metric, "(default: what their goal is about)");
  compare->add_option("--direction", arguments.direction, "max or min (default: their goal's)")
      ->check(CLI::IsMember({"max", "min"}));
  compare->footer("Example:\n  berth compare digits-3 digits-4 --metric loss --direction min");
}

void add_passive(CLI::App& app, Arguments& arguments) {
  auto* ask = app.add_subcommand("ask", "which trials of a passive run wait for their scores");
  ask->add_option("RUN", arguments.target, "such as digits-3")->required();
  ask->add_flag("--wait", arguments.wait, "until one does, or the run is over");
  ask->footer("Example:\n  berth ask digits-3 --wait --json");
  auto* tell = app.add_subcommand("tell", "what came of a trial of a passive run");
  tell->add_option("TRIAL", arguments.target, "such as digits-3/17")->required();
  tell->add_option("VALUE", arguments.values,
                   "the score (a value for each goal), NAME=VALUE …, or failed with a reason");
  tell->footer(
      "Examples:\n  berth tell digits-3/17 0.93\n  berth tell digits-3/17 accuracy=0.93 loss=0.2\n"
      "  berth tell digits-3/17 -- -0.5\n  berth tell digits-3/17 failed 'it caught fire'");
}

void add_logs(CLI::App& app, Arguments& arguments) {
  auto* command = app.add_subcommand("logs", "what the tasks printed");
  command->add_option("RUN[/TASK]", arguments.target, "such as digits-3 or digits-3/17")
      ->required();
  command->add_flag("-f,--follow", arguments.follow, "go on until the run, or the task, ends");
  command->add_flag("--raw", arguments.raw_output,
                    "terminal escapes as they are (on a terminal they are made visible)");
  command->footer("Example:\n  berth logs -f digits-3/17");
}

void add_going_on(CLI::App& app, Arguments& arguments) {
  auto* resume =
      app.add_subcommand("resume", "go on with a run that was stopped, or whose runner died");
  resume->add_flag("--detach", arguments.detach, "in the background, and print the run's name");
  resume->footer("Example:\n  berth resume digits-3");
  auto* retry = app.add_subcommand(
      "retry", "try the failed tasks of a run again, and go on with what was not finished");
  retry->add_flag("--failed", arguments.failed, "only what failed: what was not begun stays so");
  retry->add_flag("--all", arguments.all, "everything anew, also what is done (a flow: as cached)")
      ->excludes("--failed");
  retry
      ->add_flag("--file", arguments.take_file,
                 "everything anew, as cached, of a flow as its file is now")
      ->excludes("--failed");
  retry->footer("Example:\n  berth retry digits-3");
  for (auto* command : {resume, retry}) {
    command->add_option("RUN", arguments.target, "such as digits-3")->required();
    command->add_flag("--send-large", arguments.send_large,
                      "send the experiment's folder also where it has more than 1 GiB or is a home "
                      "directory");
  }
}

void add_others(CLI::App& app, Arguments& arguments) {
  const auto add = [&](const char* name, const char* help, const char* target,
                       const char* example) {
    auto* command = app.add_subcommand(name, help);
    if (target != nullptr)
      command->add_option(target, arguments.target, "such as digits-3 or digits-3/17")->required();
    command->footer(std::string("Example:\n  ") + example);
    return command;
  };
  add("runs", "list the runs, oldest first", nullptr, "berth runs --json");
  auto* show = add("show", "one run and its tasks", "RUN", "berth show digits-3");
  show->add_option("--graph", arguments.graph,
                   "of a flow: its steps and what they wait for, as text or (dot) for Graphviz")
      ->expected(0, 1)
      ->check(CLI::IsMember({"text", "dot"}))
      ->type_name("[text|dot]");
  show->add_option("--sort", arguments.sort,
                   "by task, time, state, or a parameter or metric (default: the goal)")
      ->type_name("NAME");
  show->add_flag("--csv", arguments.csv, "a line a task, for a spreadsheet or pandas")
      ->excludes("--graph");
  add_compare(app, arguments);
  add_passive(app, arguments);
  auto* cache = add("cache", "what flows keep for later runs: its size; check it, clean it up",
                    nullptr, "berth cache --collect --unused-for 7d");
  cache->add_flag("--verify", arguments.verify, "read everything, and set aside what is damaged");
  cache->add_flag("--collect", arguments.collect, "remove what no recent run needs");
  cache->add_option("--unused-for", arguments.unused_for,
                    "with --collect: results that no run has used for so long (default 30d)");
  auto* migrate = add("migrate", "take all runs of this state directory to a PostgreSQL database",
                      nullptr, "berth migrate --to postgresql://ada@db.lab/berth");
  migrate->add_option("--to", arguments.target, "the database, which has no runs yet")->required();
  add_logs(app, arguments);
  add("trace", "a run as a timeline, as ui.perfetto.dev opens it", "RUN",
      "berth trace digits-3 > digits-3.json");
  add("best", "the best trial", "RUN", "berth best digits-3 --json");
  add("why", "why a task waits, ran again, failed or was stopped", "RUN/TASK",
      "berth why digits-3/17");
  add("stop", "stop a run, so that it can be resumed", "RUN", "berth stop digits-3");
  add_going_on(app, arguments);
  auto* wait = add("wait", "wait until a run has ended; the exit code is the run's", "RUN",
                   "berth wait digits-3 --timeout 1h");
  wait->add_option("--timeout", arguments.timeout, "wait no longer, such as 1h");
  auto* rm = add("rm", "forget runs, with their output", nullptr, "berth rm digits-3 digits-4");
  rm->add_option("RUN", arguments.targets, "such as digits-3")->required();
  auto* prune = add("prune", "forget the runs that ended long ago", nullptr,
                    "berth prune --older-than 7d --keep 10 --dry-run");
  prune->add_option("--older-than", arguments.older_than, "such as 7d (default 30d)");
  prune->add_option("--keep", arguments.keep, "but leave this many of the youngest of them")
      ->check(CLI::Range(0, 1'000'000));
  prune->add_flag("--dry-run", arguments.dry_run, "only say which");
  auto* top = add("top", "who holds what of this machine and of the clusters, every second",
                  nullptr, "berth top --once");
  top->add_flag("--once", arguments.once, "one page, also on a terminal");
  auto* machine = add("machine", "what this machine has, what is free, and who holds the rest",
                      nullptr, "berth machine --json");
  machine->add_flag("--probe", arguments.probe,
                    "try whether limits hold here: a process is placed in a control group");
  machine->add_option("--disk-dir", arguments.disk_directory,
                      "the directory whose volume counts (default: the state directory)");
}

void add_placement(CLI::App& app, Arguments& arguments) {
  auto* topo =
      app.add_subcommand("topo", "the GPUs of a machine, what joins them, and their islands");
  auto* place = app.add_subcommand("place", "which K GPUs a job would get, and what that leaves");
  for (auto* command : {topo, place})
    command->add_option("--topology", arguments.topology,
                        "a file (nvidia-smi topo -m, rocm-smi --showtopo, JSON) or a known machine "
                        "such as dgx-h100 (default: this machine)");
  auto* watch = app.add_subcommand("watch-devices", "what a run asks how the GPUs are");
  watch->add_option("FILE", arguments.target, "the topology as it was first")->required();
  watch->group("");  // not shown
  topo->footer("Example:\n  berth topo --topology dgx1-v100");
  place->add_option("K", arguments.target, "how many devices")->required();
  place->add_option("--available", arguments.available,
                    "indices such as 0,2-5, or UUIDs (default: the free ones)");
  place->add_flag("--all", arguments.all, "of this machine also the devices that are held")
      ->excludes("--available");
  place->add_option("--require", arguments.require, "devices that must be among them");
  place->add_option("--policy", arguments.policy,
                    "packed (default), best-effort, simple, static-dgx1-pascal, "
                    "static-dgx1-volta, static-dgx2");
  place->add_option("--objective", arguments.objective, "sum (default), min or ring");
  place->footer(
      "Examples:\n"
      "  berth place 2          of the free GPUs of this machine\n"
      "  berth place 2 --all    of all, whoever holds them\n"
      "  berth place 2 --topology dgx1-v100 --available 0,2-5 --require 4");
}

void add_plan(CLI::App& app, Arguments& arguments) {
  PlanArguments& plan = arguments.plan;
  auto* command = app.add_subcommand(
      "plan", "how many of which accelerator a fleet of inference servers needs");
  command->add_option("PATH", arguments.target, "a fleet document (JSON), or a directory of them")
      ->required();
  command->add_option("--model", plan.model, "calibrated (default) or reference");
  command->add_option("--solver", plan.solver, "optimal (default), greedy or unlimited");
  command->add_option("--saturation", plan.saturation,
                      "greedy: None, PriorityExhaustive, PriorityRoundRobin or RoundRobin");
  command->add_flag("--delayed-best-effort", plan.delayed_best_effort,
                    "greedy: best effort after all priorities");
  command->add_flag("--heterogeneous", plan.heterogeneous,
                    "optimal, unlimited: mixes of two accelerators for one server too");
  command->add_flag("--candidates", plan.candidates, "every server on every accelerator");
  command->add_flag("--fail-unserved", plan.fail_unserved,
                    "exit with 1 when a server goes without");
  command
      ->add_option("--set", plan.sets,
                   "what if: capacity.TYPE, accelerator.NAME.cost, server.NAME.arrivalRate, …")
      ->type_name("PATH=VALUE");
  command->add_option("--sweep", plan.sweep, "cost and unserved over a range of one of these")
      ->type_name("PATH=FIRST..LAST..STEP");
  command->add_option("--time-limit", plan.time_limit, "end with the best plan so far, such as 2s");
  command->footer(
      "Examples:\n"
      "  berth plan examples/fleet\n"
      "  berth plan examples/fleet --set capacity.H100=16\n"
      "  berth plan examples/fleet --sweep capacity.H100=8..64..8");
}

void add_serve(CLI::App& app, Arguments& arguments) {
  auto* command = app.add_subcommand("serve", "plan fleets over HTTP");
  command->add_option("PATH", arguments.target,
                      "a fleet document, or a directory of them, to begin with");
  command->add_option("--listen", arguments.serve.listen,
                      "HOST:PORT (default 127.0.0.1:8321); port 0: any that is free");
  command->add_option("--token-file", arguments.serve.token_file,
                      "holds the token that requests must bear");
  command->add_option("--tls-cert", arguments.serve.certificate, "certificate (PEM)");
  command->add_option("--tls-key", arguments.serve.key, "its key (PEM)");
  command->footer(
      "Beyond this machine it listens only with a token and TLS. Without --listen, INFERNO_HOST\n"
      "and INFERNO_PORT say where.\n"
      "Example:\n"
      "  berth serve examples/fleet\n"
      "  curl -X POST http://127.0.0.1:8321/optimize");
}

/// CLI11 says "The following argument was not expected: runns"; a person is better helped by a
/// name.
std::string advise(const CLI::App& app, const std::string& message, int count,
                   const char* const* values) {
  std::vector<std::string_view> names;
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  std::vector<std::string> owned;
  for (const auto* command : subcommands) owned.push_back(command->get_name());
  names.assign(owned.begin(), owned.end());
  if (count > 1 && values[1][0] != '-' && std::ranges::find(owned, values[1]) == owned.end()) {
    const auto meant = nearest(values[1], names);
    return fmt::format("unknown command '{}'{}; see berth --help", clip(values[1]),
                       meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
  }
  return fmt::format("{}; see berth {}--help", message,
                     count > 1 && values[1][0] != '-' ? std::string(values[1]) + " " : "");
}

Status split_custom(const std::vector<std::string>& custom, Arguments& arguments) {
  for (const auto& text : custom) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
      return fail(ErrorKind::usage, "--resource: wanted NAME=AMOUNT, found '{}'", clip(text));
    arguments.resources.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return {};
}

}  // namespace

Result<std::variant<Arguments, Printout>> parse_arguments(int count, const char* const* values) {
  Arguments arguments;
  std::vector<std::string> custom;
  // What stands behind "--" is a command of the person's own, not ours to read.
  int ours = count;
  for (int i = 1; i < count && ours == count; ++i)
    if (std::string_view(values[i]) == "--") ours = i;
  for (int i = ours + 1; i < count; ++i) arguments.words.emplace_back(values[i]);
  arguments.raw.assign(values, values + count);
  if (count > 1 && std::string_view(values[1]) == "agent") {  // which reads its words itself
    arguments.command = values[1];
    return arguments;
  }

  CLI::App app("Berth finds every job its place on your accelerators.", "berth");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.add_flag("--json", arguments.json, "machine-readable, in a stable shape");
  app.footer("Start with:  berth run examples/digits/sweep.yaml\nAlone, berth shows what runs.");
  add_run(app, arguments, custom);
  add_others(app, arguments);
  add_placement(app, arguments);
  add_plan(app, arguments);
  add_serve(app, arguments);
  add_cluster(app, arguments);
  app.add_subcommand("agent", "a worker in a process of its own, started by the others");
  try {
    app.parse(ours, values);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    return Printout{chosen.empty() ? app.help() : chosen.front()->help("berth")};
  } catch (const CLI::CallForVersion&) {
    return Printout{std::string(kVersion) + "\n"};
  } catch (const CLI::ParseError& error) {
    return fail(ErrorKind::usage, "{}", advise(app, error.what(), ours, values));
  }
  const auto chosen = app.get_subcommands();
  if (!chosen.empty()) arguments.command = chosen.front()->get_name();
  if (arguments.command == "tell")
    std::ranges::move(std::exchange(arguments.words, {}), std::back_inserter(arguments.values));
  if (!arguments.words.empty() && arguments.command != "run")
    return fail(ErrorKind::usage, "'--' and a command belong to berth run");
  BERTH_TRY(split_custom(custom, arguments));
  return arguments;
}

}  // namespace berth::cli
