#include "berth/experiment/auptimizer/auptimizer.h"

#include <algorithm>
#include <array>
#include <map>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/exec/formats.h"
#include "berth/exec/metrics.h"
#include "berth/experiment/auptimizer/auptimizer_elsewhere.h"
#include "berth/experiment/auptimizer/auptimizer_search.h"
#include "berth/experiment/document/reading.h"

namespace berth::experiment {
namespace {

constexpr std::array<std::string_view, 2> kTargets{"max", "min"};
constexpr std::array<std::string_view, 4> kAupPolicies{"median", "bandit", "truncation",
                                                       "curve_fitting"};
constexpr std::array<std::string_view, 13> kKnown{
    "name",        "script",        "proposer",    "n_samples",   "n_parallel",
    "target",      "resource",      "workingdir",  "job_failure", "parameter_config",
    "random_seed", "resource_args", "runtime_args"};
/// A script is sent with the trials in any case, and each of their reports is kept.
constexpr std::array<std::string_view, 4> kRuntimeArguments{"env", "prescript", "postscript",
                                                            "overwrite"};
constexpr std::array<std::string_view, 6> kResourceArguments{
    "save_model", "early_stop", "multi_res_labels", "track_intermediate_results",
    "prescript",  "postscript"};
constexpr std::array<std::string_view, 7> kEarlyStopArguments{"aup_policy",
                                                              "aup_policy_steps",
                                                              "warmup",
                                                              "bandit_factor",
                                                              "truncation_percentage",
                                                              "curve_fitting_threshold",
                                                              "curve_fitting_max_iters"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Result<bool> flag(const Field& map, std::string_view key) {
  const auto field = map.find(key);
  if (!field) return false;
  BERTH_ASSIGN(const std::size_t value, field->choice(kNoYes));
  return value == 1;
}

/// "./2dfunc/exp_cpu.json" is called exp_cpu.
std::string name_of(std::string_view text) {
  const auto slash = text.find_last_of('/');
  if (slash != std::string_view::npos) text.remove_prefix(slash + 1);
  if (const auto dot = text.rfind(".json"); dot != std::string_view::npos)
    text = text.substr(0, dot);
  std::string name;
  for (const char c : text) name += valid_name(std::string("n") + c) ? c : '_';
  name = name.substr(0, 64);
  return valid_name(name) ? name : "experiment";
}

Status read_resource(const Field& root, AuptimizerExperiment& experiment) {
  Program& program = experiment.program;
  BERTH_ASSIGN(const Field field, root.get("resource"));
  BERTH_ASSIGN(const std::string resource, field.text());
  experiment.resource = resource;
  BERTH_ASSIGN(program.parallel, integer_or(root, "n_parallel", 1, 1));
  if (resource == "passive") {
    program.passive = true;
    program.parallel = 1;  // as there: one at a time
  } else if (resource == "gpu") {
    program.resources.set(Known::gpu, 1);
  } else if (resource == "node" || resource == "aws" || resource == "slurm") {
    BERTH_TRY(read_elsewhere(root, experiment));
  } else if (resource != "cpu") {
    return field.error(
        fmt::format("expected cpu, gpu, passive, node, aws or slurm, got '{}'", clip(resource)));
  }
  if (!program.passive) program.resources.set(Known::cpu, 1000);
  program.resources_line = field.node().line;
  return {};
}

Status read_early_stop(const Field& field, AuptimizerExperiment& experiment) {
  EarlyStop stop;
  BERTH_ASSIGN(const Field policy, field.get("aup_policy"));
  BERTH_ASSIGN(const std::size_t which, policy.choice(kAupPolicies));
  stop.policy = static_cast<EarlyStop::Policy>(which);
  BERTH_ASSIGN(stop.every, integer_or(field, "aup_policy_steps", 1, 1));
  BERTH_ASSIGN(stop.warmup, integer_or(field, "warmup", 0, 0));
  BERTH_ASSIGN(const double factor, number_or(field, "bandit_factor", 0.5));
  stop.slack = std::clamp(1 - factor, 0.0, 1.0);
  BERTH_ASSIGN(const double part, number_or(field, "truncation_percentage", 0.3));
  stop.part = std::clamp(part, 0.0, 1.0);
  BERTH_ASSIGN(const double threshold, number_or(field, "curve_fitting_threshold", 0.95));
  stop.probability = std::clamp(1 - threshold, 0.0, 1.0);
  BERTH_ASSIGN(stop.steps, integer_or(field, "curve_fitting_max_iters", 0, 1));
  if (stop.policy == EarlyStop::Policy::curve)
    experiment.notes.push_back(
        fmt::format("early_stop curve_fitting: stops what beats the best with less than {:.3g}",
                    stop.probability));
  experiment.program.early_stop = stop;
  return {};
}

/// The names of the values behind the score, as metrics; what no metric may have in its name is
/// '_'.
Status read_labels(const Field& field, Program& program) {
  BERTH_ASSIGN(const auto items, field.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(std::string label, item.text());
    for (char& c : label)
      if (!exec::valid_metric_name(std::string_view(&c, 1))) c = '_';
    const bool twice = label == "score" ||
                       std::ranges::find(program.score_labels, label) != program.score_labels.end();
    if (twice || !exec::valid_metric_name(label))
      return item.error(fmt::format("'{}' is another metric's name, or none", clip(label)));
    program.score_labels.push_back(std::move(label));
  }
  return {};
}

Status read_resource_arguments(const Field& field, AuptimizerExperiment& experiment) {
  BERTH_ASSIGN(experiment.program.save_best, flag(field, "save_model"));
  if (const auto stop = field.find("early_stop")) BERTH_TRY(read_early_stop(*stop, experiment));
  if (const auto labels = field.find("multi_res_labels"))
    BERTH_TRY(read_labels(*labels, experiment.program));
  return {};
}

/// What is run before or after the script. Older documents have it in resource_args.
Result<std::string> around(const Field& root, std::string_view key) {
  for (const auto* map : {"runtime_args", "resource_args"})
    if (const auto arguments = root.find(map))
      if (const auto script = arguments->find(key)) return exec::process_text(*script);
  return "";
}

/// The command, with what is to be done before and after it.
Status read_script(const Field& root, AuptimizerExperiment& experiment) {
  Program& program = experiment.program;
  BERTH_ASSIGN(const Field field, root.get("script"));
  BERTH_ASSIGN(std::string script, exec::process_text(field));
  if (words(script).empty()) return field.error("the script's name is empty");
  // It is found in the working directory, not in PATH; "python train.py" is two words.
  if (script.find('/') == std::string::npos && words(script).size() == 1) script = "./" + script;
  program.run.text = script + " {params_file}";
  experiment.script = std::move(script);
  program.run.shell.assign(exec::kPlainShell.begin(), exec::kPlainShell.end());
  program.run_line = field.node().line;
  const auto arguments = root.find("runtime_args");
  if (const auto env = arguments ? arguments->find("env") : std::nullopt)
    BERTH_TRY(exec::read_environment(*env, program.environment));
  BERTH_ASSIGN(const std::string before, around(root, "prescript"));
  BERTH_ASSIGN(const std::string after, around(root, "postscript"));
  if (before.empty() && after.empty()) return {};
  // They are not ours to be strict with; and theirs is a login shell, which knows `source`.
  program.run.shell = {"bash", "--norc", "-c"};
  const auto resource = root.find("resource");
  const auto name = resource ? resource->text() : Result<std::string>("");
  const bool remote = name && (*name == "node" || *name == "aws");
  // There the one before begins in the home directory, and the other in the script's.
  if (!before.empty() && remote)
    program.run.text = fmt::format("berth_directory=$PWD\ncd\n{}\ncd \"$berth_directory\"\n{}",
                                   before, program.run.text);
  else if (!before.empty())
    program.run.text = before + "\n" + program.run.text;
  if (!after.empty())
    program.run.text += fmt::format("\nberth_status=$?\n{}\nexit $berth_status", after);
  return {};
}

Status read_failures(const Field& root, Program& program) {
  program.stop_on_failure = true;  // as there, unless it is told otherwise
  const auto field = root.find("job_failure");
  if (!field) return {};
  BERTH_ASSIGN(const bool ignored, flag(*field, "ignore_fail"));
  program.stop_on_failure = !ignored;
  if (ignored) program.allow_failures = exec::kAnyFailures;
  BERTH_ASSIGN(const std::int64_t retries, integer_or(*field, "job_retries", 0, 0));
  program.retries = static_cast<int>(std::min<std::int64_t>(retries, 1000));
  return {};
}

/// Adds the keys of a map that are not known here.
Status add_unknown(const Field& map, const std::string& prefix,
                   std::span<const std::string_view> known, std::vector<std::string>& unused) {
  BERTH_ASSIGN(const auto entries, map.entries());
  for (const auto& [key, value] : entries)
    if (!among(known, key)) unused.push_back(prefix + clip(key, 32));
  return {};
}

Status note_the_rest(const Field& root, AuptimizerExperiment& experiment) {
  std::vector<std::string> unused;
  std::vector<std::string_view> known(kKnown.begin(), kKnown.end());
  const Search& search = experiment.program.search;
  if (search.budget) {
    known.emplace_back("eta");
    if (search.model)
      known.insert(known.end(), {"n_iterations", "min_budget", "max_budget"});
    else
      known.insert(known.end(), {"max_iter", "skip_last"});
  }
  BERTH_TRY(add_unknown(root, "", known, unused));
  if (const auto arguments = root.find("runtime_args"))
    BERTH_TRY(add_unknown(*arguments, "runtime_args.", kRuntimeArguments, unused));
  if (const auto arguments = root.find("resource_args")) {
    std::vector<std::string_view> of_resource(kResourceArguments.begin(), kResourceArguments.end());
    const auto elsewhere = elsewhere_arguments(experiment.resource);
    of_resource.insert(of_resource.end(), elsewhere.begin(), elsewhere.end());
    BERTH_TRY(add_unknown(*arguments, "resource_args.", of_resource, unused));
    if (const auto stop = arguments->find("early_stop"))
      BERTH_TRY(add_unknown(*stop, "early_stop.", kEarlyStopArguments, unused));
  }
  if (!unused.empty())
    experiment.notes.push_back("ignored, because Berth has nothing that corresponds: " +
                               clip(join(unused, ", "), 400));
  return {};
}

}  // namespace

bool is_auptimizer(std::string_view text) {
  const auto root = Field::parse(text, "");
  if (!root || !root->is_map() || root->find("run") || root->find("steps")) return false;
  // One that lacks its script is told so, and not what Berth's own files lack.
  return root->find("script") || root->find("parameter_config");
}

Result<AuptimizerExperiment> read_auptimizer(std::string_view text, const std::string& file) {
  BERTH_ASSIGN(const Field root, Field::parse(text, file));
  AuptimizerExperiment experiment;
  Program& program = experiment.program;
  program.kind = "experiment";
  program.auptimizer = true;
  if (const auto compression = root.find("compression"))
    return compression->error(
        "compressing a model is work for Auptimizer's own tools; Berth runs experiments");
  const auto name = root.find("name");
  program.name = name_of(name && name->text() ? *name->text() : file);
  BERTH_TRY(read_script(root, experiment));
  BERTH_TRY(read_proposer(root, experiment));
  BERTH_TRY(read_parameters(root, experiment));
  BERTH_TRY(read_resource(root, experiment));
  Goal goal{.metric = "score"};
  BERTH_ASSIGN(const std::size_t target, choice_or(root, "target", kTargets));
  goal.maximize = target == 0;
  program.goal = goal;
  if (const auto arguments = root.find("resource_args"))
    BERTH_TRY(read_resource_arguments(*arguments, experiment));
  BERTH_TRY(read_failures(root, program));
  if (const auto directory = root.find("workingdir")) {
    BERTH_ASSIGN(experiment.directory, directory->text());
  }
  BERTH_TRY(note_the_rest(root, experiment));
  if (const auto trials = count_trials(program); !trials)
    return root.find("parameter_config")->error(trials.error());
  return experiment;
}

Status read_gpu_mapping(std::string_view text, const std::string& file,
                        AuptimizerExperiment& experiment) {
  Program& program = experiment.program;
  if (program.resources.get(Known::gpu) == 0) return {};
  const std::string mapping = environment_value(text, "gpu_mapping");
  if (mapping.empty()) return {};
  BERTH_ASSIGN(const Field root, Field::parse(mapping, file + ": gpu_mapping"));
  BERTH_ASSIGN(const auto entries, root.entries());
  std::map<std::string, std::int64_t> times;
  for (const auto& [resource, gpu] : entries) {
    BERTH_ASSIGN(const std::string device, gpu.text());
    if (device.empty() || device.find_first_of(", \t") != std::string::npos)
      return gpu.error("expected one GPU's number");
    ++times[device];
  }
  if (times.empty()) return {};
  for (const auto& [gpu, count] : times) {
    program.gpus += (program.gpus.empty() ? "" : ",") + gpu;
    program.trials_per_gpu = std::max(program.trials_per_gpu, count);
  }
  program.parallel = std::min(program.parallel, static_cast<std::int64_t>(entries.size()));
  return {};
}

}  // namespace berth::experiment
