#include "berth/cli/commands/run_options.h"

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
    {"--cpu", "cpu", "Number of cores, such as 2 or 0.5 (default: 1)"},
    {"--mem", "mem", "Memory, such as 4G or 512MiB"},
    {"--disk", "disk", "Disk space on the volume of the state directory"},
    {"--gpu", "gpu", "Number of GPUs: whole, or shared with the next two options"},
    {"--gpu-mem", "gpu_mem", "Memory on each shared GPU, such as 10G"},
    {"--gpu-slots", "gpu_slots", "Throughput slots on each shared GPU"},
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
    "Options override the file. Ctrl-C stops the run; 'berth resume RUN' continues it.\n"
    "\n"
    "Examples:\n"
    "  berth run sweep.yaml\n"
    "  berth run examples/flow/licences.yaml\n"
    "  berth run flow.yaml map/A report --set depth=30 --force map\n"
    "  berth run flow.yaml --rows samples.csv --label batch=7\n"
    "  berth run --cpu 2 --mem 4G --timeout 1h -- ./train.py --lr 0.1\n"
    "  berth run --gpu 2 --gpu-mem-min 30G --gpu-objective min -- ./train.py\n"
    "  sort names | berth run --stdin - -- ./count.py\n"
    "  berth run --cluster lab --plan sweep.yaml";

void add_limits(RunOptions& run, Options& options) {
  options.group("Limits and failures");
  options.value("--timeout", run.timeout, "Time limit of each task, such as 10m").named("DURATION");
  options.value("--retries", run.retries, "Retry a failed task up to N times").between(0, 1000);
  options.flag_with_value("--allow-failures", "N", run.allow_failures,
                          "Succeed although tasks failed; with N: at most N tasks");
  options
      .value("--retain", run.retain,
             "Keep the allocation after a failure, for 'berth retry' (such as 10m)")
      .named("DURATION");
  options
      .value("--enforce", run.enforce,
             "If a machine cannot enforce limits: warn once (advisory, default) or run nothing "
             "(required)")
      .named("MODE")
      .one_of({"required", "advisory"});
  options
      .value("--gpu-mem-over", run.gpu_mem_over,
             "If a task exceeds --gpu-mem: warn (default) or kill it")
      .named("ACTION");
  options.group("Scheduling");
  options.value("-j,--parallel", run.parallel, "Run at most N tasks in parallel")
      .between(1, 1'000'000);
  options.value("--priority", run.priority, "Start runs with a higher priority first (default: 0)")
      .between(-1000, 1000);
}

void add_where(RunOptions& run, Options& options) {
  options
      .list("--cluster", run.clusters,
            "Run on these clusters, the first preferred (default: this machine); see berth cluster "
            "list")
      .split_at(',')
      .one_at_a_time()
      .named("CLUSTER");
  options.flag("--send-large", run.send_large,
               "Send the experiment's folder to remote hosts although it exceeds 1 GiB or is a "
               "home directory");
  options.flag("--detach", run.detach, "Run in the background and print the run's name");
  options
      .flag("--plan", run.plan,
            "Show how many tasks would run in parallel, where, what limits them, and which files "
            "would be sent; run nothing")
      .excludes("--detach");
  options.group("Names and notifications");
  options.value("--name", run.name, "Name of the run; a number is added").named("NAME");
  options.list("--label", run.labels, "Label for 'berth runs --label', such as team=vision")
      .one_at_a_time()
      .named("NAME=VALUE");
  options
      .list("--notify", run.notify,
            "Notify when the run ends or a task fails: URL, mail:ADDRESS or a command")
      .one_at_a_time()
      .named("TARGET");
}

}  // namespace

void AmountOptions::add_to(Options& options) {
  for (std::size_t i = 0; i < known.size(); ++i)
    options.value(kAmountOptions[i].flag, known[i], kAmountOptions[i].help).named("AMOUNT");
  options.list("--resource", others, "User-defined resource, such as licence=1")
      .named("NAME=AMOUNT");
}

Result<std::vector<std::pair<std::string, std::int64_t>>> AmountOptions::read() const {
  std::vector<std::pair<std::string, std::string>> given;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i]) given.emplace_back(kAmountOptions[i].resource, *known[i]);
  for (const auto& text : others) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
      return fail(ErrorKind::usage, "--resource: expected NAME=AMOUNT, got '{}'", clip(text));
    given.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::vector<std::pair<std::string, std::int64_t>> amounts;
  for (const auto& [resource, text] : given) {
    if (!valid_resource_name(resource))
      return fail(ErrorKind::usage, "--resource: '{}' is not the name of a resource",
                  clip(resource));
    auto amount = parse_amount(resource, text);
    if (!amount)
      return std::unexpected(within(fmt::format("--{}", resource), std::move(amount).error()));
    amounts.emplace_back(resource, *amount);
  }
  return amounts;
}

void GpuOptions::add_to(Options& options) {
  options
      .list("--gpu-slot-sizes", slot_sizes,
            "Use only GPUs with one of these numbers of slots, such as 13,31")
      .split_at(',')
      .named("SLOTS")
      .between(1, 10'000);
  options
      .value("--gpu-mem-min", memory_min,
             "Use only GPUs with this much memory in total, such as 30G")
      .named("AMOUNT");
  options
      .value("--gpu-policy", policy,
             "How to select GPUs: packed (default), best-effort, simple, static-dgx1-pascal, "
             "static-dgx1-volta or static-dgx2")
      .named("POLICY");
  options.value("--gpu-objective", objective, "What to maximize: sum (default), min or ring")
      .named("OBJECTIVE");
  options.value("--gpu-require", require, "Include these GPUs: indices such as 0,2-5, or UUIDs")
      .named("GPUS");
}

Result<engine::DeviceOverrides> GpuOptions::read() const {
  const auto names = [](std::string_view text) -> Result<std::vector<std::string>> {
    std::vector<std::string> required;
    BERTH_TRY(machine::add_required(text, required));
    return required;
  };
  const auto bytes = [](std::string_view text) {
    return parse_amount(berth::name(Known::gpu_mem), text);
  };
  engine::DeviceOverrides devices{.slot_sizes = slot_sizes};
  BERTH_TRY(set_given("--gpu-mem-min", memory_min, devices.memory_min, bytes));
  BERTH_TRY(set_given("--gpu-policy", policy, devices.policy, placement::policy_named));
  BERTH_TRY(set_given("--gpu-objective", objective, devices.objective, placement::objective_named));
  BERTH_TRY(set_given("--gpu-require", require, devices.required, names));
  return devices;
}

void RunOptions::add_to(Options& options) {
  output.add_to(options);
  options.after_dashes(words);
  options.usage("[OPTIONS] -- COMMAND [ARGUMENT...]");
  options.value("FILE", file, "Experiment or flow (YAML)");
  options.group("Flow options");
  flow.add_to(options);
  options
      .value("--cache", cache,
             "Use the cache: on (default), off, read (store nothing) or write (reuse nothing)")
      .named("MODE")
      .one_of({"off", "read", "write", "on"});
  options
      .value("--image", image,
             "Run the tasks in containers of this image (podman, docker or apptainer), overriding "
             "the file")
      .named("IMAGE");
  options
      .value("--rows", rows,
             "Start one run per row of this table (.csv, .tsv), whose columns are parameters; exit "
             "with 1 if any failed")
      .named("TABLE");
  options.group("Inputs");
  options
      .list("--warm-start", warm_start, "Evaluate the three best trials of this earlier run first")
      .one_at_a_time()
      .named("RUN");
  options
      .value("--stdin", input,
             "Standard input of each task, '-' for this command's (default: empty); a copy is kept "
             "with the run")
      .named("FILE");
  options.group("Resources of each task");
  amounts.add_to(options);
  gpus.add_to(options);
  add_limits(*this, options);
  add_where(*this, options);
  options.footer(kRunExamples);
}

Result<engine::RunRequest> RunOptions::request(os::Env& env) const {
  engine::RunRequest request{.file = file, .command = words, .name = name};
  for (const auto& label : labels) BERTH_TRY(exec::add_label(label, request.labels));
  for (const auto& target : notify) {
    BERTH_ASSIGN(request.notify.emplace_back(), exec::notify_of_option(target));
  }
  BERTH_ASSIGN(request.resources, amounts.read());
  BERTH_ASSIGN(request.devices, gpus.read());
  BERTH_TRY(set_given("--timeout", timeout, request.timeout, parse_duration));
  if (request.timeout && *request.timeout <= Duration(0))
    return fail(ErrorKind::usage, "--timeout: expected more than 0, got {}", timeout);
  BERTH_TRY(
      set_given("--gpu-mem-over", gpu_mem_over, request.gpu_mem_over, exec::gpu_mem_over_named));
  BERTH_TRY(set_given("--retain", retain, request.retain, parse_duration));
  BERTH_TRY(set_given("--allow-failures", allow_failures, request.allow_failures,
                      exec::allow_failures_of));
  if (!enforce.empty()) request.enforce = enforce == "required";
  request.retries = retries;
  request.priority = priority;
  request.parallel = parallel;
  request.input = input;
  request.warm_start = warm_start;
  BERTH_ASSIGN(request.flow, flow.read(env));
  request.overwrite = flow.overwrite;
  if (!cache.empty()) request.cache = run::cache_mode(cache);
  request.image = image;
  request.clusters = clusters;
  request.send_large = send_large;
  request.option_prefix = "--";
  return request;
}

}  // namespace berth::cli
