#include "berth/cli/run_options.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/fields.h"

namespace berth::cli {
namespace {

struct AmountOption {
  const char* flag;
  const char* resource;
  const char* help;
};
constexpr std::array<AmountOption, 6> kAmountOptions{{
    {"--cpu", "cpu", "cores, fractions allowed (default 1)"},
    {"--mem", "mem", "memory, such as 4G or 512MiB"},
    {"--disk", "disk", "space on the state directory's volume"},
    {"--gpu", "gpu", "GPUs: whole, or with one of the next two parts of so many"},
    {"--gpu-mem", "gpu_mem", "memory of a GPU that others may share, such as 10G"},
    {"--gpu-slots", "gpu_slots", "throughput slots of a GPU that others may share"},
}};

/// Sets `value` to what `read` makes of the text, where there is any.
template <typename Value, typename Read>
Status set_given(std::string_view flag, const std::string& text, Value& value, const Read& read) {
  if (text.empty()) return {};
  const auto found = read(text);
  if (!found) return fail(ErrorKind::usage, "{}: {}", flag, found.error().message);
  value = *found;
  return {};
}

constexpr const char* kRunExamples =
    "Examples:\n"
    "  berth run sweep.yaml\n"
    "  berth run examples/flow/licences.yaml\n"
    "  berth run flow.yaml map/A report --set depth=30 --force map\n"
    "  berth run flow.yaml --rows samples.csv --label batch=7\n"
    "  berth run --cpu 2 --mem 4G --timeout 1h -- ./train.py --lr 0.1\n"
    "  berth run --gpu 2 --gpu-mem-min 30G --gpu-objective min -- ./train.py\n"
    "  sort names | berth run --stdin - -- ./count.py\n"
    "  berth run --cluster lab sweep.yaml\n"
    "  berth run --cluster lab --plan sweep.yaml     what of its folder would be sent\n"
    "The options beat the file. Ctrl-C stops the run; `berth resume RUN` goes on.";

void add_limits(RunOptions& run, Options& options) {
  options
      .value("--enforce", run.enforce,
             "where a machine cannot hold a task to its limits: 'required' does not run it there, "
             "'advisory' (the default) says so once")
      .one_of({"required", "advisory"});
  options.value("--timeout", run.timeout, "time limit of each task, such as 10m");
  options.value("--gpu-mem-over", run.gpu_mem_over,
                "what comes of a task that has more of a GPU than --gpu-mem: warn (default), kill");
  options.value("--retries", run.retries, "further attempts of a task that fails").between(0, 1000);
  options.flag_with_value("--allow-failures", "N", run.allow_failures,
                          "the run is done also if tasks fail; =N: if at most N fail");
  options.value("--retain", run.retain,
                "keep an alloc for so long when the run fails, for berth retry, such as 10m");
  options.value("--priority", run.priority, "greater goes first").between(-1000, 1000);
  options.value("--parallel", run.parallel, "tasks side by side at most").between(1, 1'000'000);
}

}  // namespace

void AmountOptions::add_to(Options& options) {
  for (std::size_t i = 0; i < known.size(); ++i)
    options.value(kAmountOptions[i].flag, known[i], kAmountOptions[i].help).named("AMOUNT");
  options.list("--resource", others, "an amount of a name of your own, such as licence=1")
      .named("NAME=AMOUNT");
}

bool AmountOptions::any() const {
  return !others.empty() || std::ranges::any_of(known, &std::optional<std::string>::has_value);
}

Result<bool> AmountOptions::apply(Resources& resources) const {
  std::vector<std::pair<std::string, std::string>> given;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i]) given.emplace_back(kAmountOptions[i].resource, *known[i]);
  for (const auto& text : others) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
      return fail(ErrorKind::usage, "--resource: expected NAME=AMOUNT, got '{}'", clip(text));
    given.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  bool no_devices = false;
  for (const auto& [resource, text] : given) {
    if (!valid_resource_name(resource))
      return fail(ErrorKind::usage, "--resource: '{}' is not the name of a resource",
                  clip(resource));
    auto amount = parse_amount(resource, text);
    if (!amount)
      return std::unexpected(within(fmt::format("--{}", resource), std::move(amount).error()));
    resources.set(resource, *amount);
    no_devices = no_devices || (resource == berth::name(Known::gpu) && *amount == 0);
  }
  return no_devices;
}

void GpuOptions::add_to(Options& options) {
  options
      .list("--gpu-slot-sizes", slot_sizes,
            "only GPUs with one of these numbers of slots, such as 13,31")
      .split_at(',')
      .named("SLOTS")
      .between(1, 10'000);
  options
      .value("--gpu-mem-min", memory_min, "only GPUs that have so much memory in all, such as 30G")
      .named("AMOUNT");
  options.value("--gpu-policy", policy,
                "which of several GPUs: packed (default), best-effort, simple, "
                "static-dgx1-pascal, static-dgx1-volta, static-dgx2");
  options.value("--gpu-objective", objective, "sum (default), min or ring");
  options.value("--gpu-require", require,
                "GPUs that must be among them: indices such as 0,2-5, or UUIDs");
}

bool GpuOptions::any() const {
  return !(slot_sizes.empty() && memory_min.empty() && policy.empty() && objective.empty() &&
           require.empty());
}

Status GpuOptions::apply(machine::DeviceSelection& selection) const {
  const auto names = [](std::string_view text) -> Result<std::vector<std::string>> {
    std::vector<std::string> required;
    BERTH_TRY(machine::add_required(text, required));
    return required;
  };
  const auto bytes = [](std::string_view text) {
    return parse_amount(berth::name(Known::gpu_mem), text);
  };
  if (!slot_sizes.empty()) selection.slot_sizes = slot_sizes;
  BERTH_TRY(set_given("--gpu-mem-min", memory_min, selection.memory_min, bytes));
  BERTH_TRY(set_given("--gpu-policy", policy, selection.policy, placement::policy_named));
  BERTH_TRY(
      set_given("--gpu-objective", objective, selection.objective, placement::objective_named));
  return set_given("--gpu-require", require, selection.required, names);
}

void RunOptions::add_to(Options& options) {
  options.json(json);
  options.after_dashes(words);
  options.value("FILE", file, "an experiment or a flow (YAML)");
  flow.add_to(options);
  options.value("--name", name, "the run's name; its number is added");
  amounts.add_to(options);
  gpus.add_to(options);
  add_limits(*this, options);
  options
      .list("--cluster", clusters,
            "where it runs, by names of berth cluster list: the first, and what of the others "
            "helps; default: this machine")
      .split_at(',')
      .one_at_a_time()
      .named("CLUSTER");
  options
      .value("--cache", cache,
             "of a flow: on (default), off, read (keep nothing new) or write (take nothing)")
      .one_of({"off", "read", "write", "on"});
  options
      .value("--image", image,
             "of a flow: run its tasks in containers of this image (podman, docker or apptainer), "
             "whatever the file says")
      .named("IMAGE");
  options
      .list("--label", labels,
            "what the run is called by beside its name, such as team=vision; berth runs --label")
      .one_at_a_time()
      .named("NAME=VALUE");
  options
      .list("--notify", notify,
            "who is told when the run ends, or a task fails: a URL, mail:ADDRESS, or a command")
      .one_at_a_time()
      .named("WHO");
  options
      .value("--rows", rows,
             "of a flow: a run for each row of this table (.csv, .tsv), whose columns are "
             "parameters; the exit code is 1 if any failed")
      .named("TABLE");
  options.list("--warm-start", warm_start, "measure three good trials of this earlier run first")
      .one_at_a_time()
      .named("RUN");
  options
      .value("--stdin", input,
             "the file that each task gets as its standard input, '-' for that of this command "
             "(default: empty input); it is kept with the run")
      .named("FILE");
  options.flag("--detach", detach, "run in the background, and print the run's name");
  options.flag("--send-large", send_large,
               "send the experiment's folder to other machines also where it has more than 1 GiB "
               "or is a home directory");
  options
      .flag("--plan", plan,
            "show how many tasks would run side by side, where, and why no more; with --cluster "
            "what of the experiment's folder would be sent; run nothing")
      .excludes("--detach");
  options.footer(kRunExamples);
}

Status RunOptions::apply(experiment::Program& program) const {
  if (!name.empty()) {
    if (!experiment::valid_name(name))
      return fail(ErrorKind::usage,
                  "--name: expected letters, digits, '_', '.' and '-', at most 64, got '{}'",
                  clip(name));
    program.name = name;
  }
  for (const auto& label : labels) BERTH_TRY(exec::add_label(label, program.labels));
  for (const auto& who : notify) {
    BERTH_ASSIGN(auto one, exec::notify_of_option(who));
    program.notify.push_back(std::move(one));
  }
  if (program.notify.size() > exec::kMostNotify)
    return fail(ErrorKind::usage, "--notify: expected at most {}, with those of the file",
                exec::kMostNotify);
  BERTH_ASSIGN(const bool no_devices, amounts.apply(program.resources));
  BERTH_TRY(gpus.apply(program.selection));
  const auto implied = machine::imply_devices(program.selection, no_devices, program.resources);
  if (!implied) return fail(ErrorKind::usage, "{}", implied.error().message);
  BERTH_TRY(set_given("--timeout", timeout, program.timeout, parse_duration));
  if (!timeout.empty() && program.timeout <= Duration(0))
    return fail(ErrorKind::usage, "--timeout: expected more than 0, got {}", timeout);
  BERTH_TRY(
      set_given("--gpu-mem-over", gpu_mem_over, program.gpu_mem_over, exec::gpu_mem_over_named));
  BERTH_TRY(set_given("--retain", retain, program.retain, parse_duration));
  BERTH_TRY(set_given("--allow-failures", allow_failures, program.allow_failures,
                      exec::allow_failures_of));
  if (!enforce.empty()) program.enforce = enforce == "required";
  if (retries > 0) program.retries = retries;
  if (priority != 0) program.priority = priority;
  if (parallel > 0) program.parallel = parallel;
  return {};
}

}  // namespace berth::cli
