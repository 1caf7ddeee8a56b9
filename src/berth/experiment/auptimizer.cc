#include "berth/experiment/auptimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/fields.h"
#include "berth/experiment/auptimizer_elsewhere.h"
#include "berth/experiment/halving.h"
#include "berth/experiment/reading.h"

namespace berth::experiment {
namespace {

constexpr std::array<std::string_view, 3> kParameterTypes{"float", "int", "choice"};
constexpr std::array<std::string_view, 2> kTargets{"max", "min"};
constexpr std::array<std::string_view, 4> kAupPolicies{"median", "bandit", "truncation",
                                                       "curve_fitting"};
/// The parameter in which hyperband and bohb tell a script how long to train.
constexpr const char* kBudget = "n_iterations";
constexpr std::array<std::string_view, 13> kKnown{
    "name",        "script",        "proposer",    "n_samples",   "n_parallel",
    "target",      "resource",      "workingdir",  "job_failure", "parameter_config",
    "random_seed", "resource_args", "runtime_args"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Result<std::int64_t> integer_or(const Field& map, std::string_view key, std::int64_t otherwise,
                                std::int64_t least) {
  const auto field = map.find(key);
  return field ? exec::integer_within(*field, least, kMostTrials) : otherwise;
}

Result<double> number_or(const Field& map, std::string_view key, double otherwise) {
  const auto field = map.find(key);
  return field ? field->number() : otherwise;
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

/// Every `interval` from min to max: a list of choices, as the steps need not end at max.
Status read_interval(const Field& field, Parameter& parameter) {
  BERTH_ASSIGN(const double interval, field.number());
  const double steps = (parameter.max - parameter.min) / interval;
  if (!(interval > 0) || !(steps < static_cast<double>(kMostTrials)))
    return field.error(fmt::format("wanted at most {} steps", kMostTrials));
  for (std::int64_t i = 0; i <= static_cast<std::int64_t>(steps + 1e-9); ++i)
    parameter.choices.push_back(
        fmt::format("{:.12g}", parameter.min + static_cast<double>(i) * interval));
  return {};
}

Result<Parameter> read_parameter(const Field& field, bool sequence) {
  BERTH_ASSIGN(const Field name, field.get("name"));
  Parameter parameter{.name = {}, .choices = {}};
  BERTH_ASSIGN(parameter.name, name.text());
  if (!valid_parameter_name(parameter.name))
    return name.error("a parameter's name is made of letters, digits and _");
  BERTH_ASSIGN(const Field range, field.get("range"));
  BERTH_ASSIGN(const auto items, range.items());
  BERTH_ASSIGN(const std::size_t type, choice_or(field, "type", kParameterTypes));
  if (kParameterTypes[type] == "choice") {
    if (items.empty()) return range.error("the list of choices is empty");
    for (const auto& item : items) {
      BERTH_ASSIGN(std::string text, exec::process_text(item));
      parameter.choices.push_back(std::move(text));
    }
    return parameter;
  }
  if (items.size() != 2) return range.error("wanted [min, max]");
  BERTH_ASSIGN(parameter.min, items[0].number());
  BERTH_ASSIGN(parameter.max, items[1].number());
  if (parameter.min > parameter.max) return range.error("max is below min");
  parameter.integer = kParameterTypes[type] == "int";
  if (parameter.integer)
    for (const auto& item : items)
      if (const auto whole = item.integer(); !whole) return std::unexpected(whole.error());
  if (!sequence) return parameter;
  BERTH_ASSIGN(parameter.points, integer_or(field, "n", 0, 1));
  if (const auto interval = field.find("interval"); interval && parameter.points == 0)
    BERTH_TRY(read_interval(*interval, parameter));
  if (!parameter.integer && parameter.points == 0 && parameter.choices.empty())
    return field.error(
        "a sequence takes n points of a range, or one every interval: neither is told");
  return parameter;
}

Status read_parameters(const Field& root, Program& program) {
  BERTH_ASSIGN(const Field config, root.get("parameter_config"));
  BERTH_ASSIGN(const auto items, config.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(Parameter parameter,
                 read_parameter(item, program.search.method == Search::Method::grid));
    for (const auto& earlier : program.params)
      if (lower(earlier.name) == lower(parameter.name))
        return item.error(fmt::format("'{}' and '{}' would share one BERTH_PARAM_ variable",
                                      earlier.name, parameter.name));
    program.params.push_back(std::move(parameter));
  }
  return {};
}

Status read_budget(const Field& root, std::string_view proposer, Program& program) {
  Budget budget;
  budget.parameter = kBudget;
  BERTH_ASSIGN(budget.reduction, integer_or(root, "eta", 3, 2));
  if (proposer == "hyperband") {
    BERTH_ASSIGN(budget.max, number_or(root, "max_iter", 81));
  } else {
    BERTH_ASSIGN(budget.min, number_or(root, "min_budget", 1));
    BERTH_ASSIGN(budget.max, number_or(root, "max_budget", 9));
  }
  if (!(budget.min > 0) || budget.max < budget.min)
    return root.error(fmt::format("a budget from {} to {} is none", budget.min, budget.max));
  program.search.method = Search::Method::hyperband;
  program.search.model = proposer == "bohb";
  program.search.budget = budget;
  program.search.samples = hyperband_round(budget);
  return {};
}

/// Theirs, and the nearest of ours.
Status read_proposer(const Field& root, AuptimizerExperiment& experiment) {
  Program& program = experiment.program;
  Search& search = program.search;
  const auto field = root.find("proposer");
  std::string proposer = "random";
  if (field) {
    BERTH_ASSIGN(proposer, field->text());
  }
  BERTH_ASSIGN(search.samples, integer_or(root, "n_samples", 10, 1));
  BERTH_ASSIGN(const std::int64_t seed, integer_or(root, "random_seed", 0, 0));
  search.seed = static_cast<std::uint64_t>(seed);
  search.method = Search::Method::random;
  if (proposer == "sequence") {
    search.method = Search::Method::grid;
    search.samples = 0;
  } else if (proposer == "hyperopt" || proposer == "spearmint") {
    search.method = Search::Method::tpe;
    experiment.notes.push_back(fmt::format("proposer {}: searched by method tpe", proposer));
  } else if (proposer == "hyperband" || proposer == "bohb") {
    BERTH_TRY(read_budget(root, proposer, program));
    if (proposer == "bohb")
      experiment.notes.emplace_back(
          "proposer bohb: method hyperband, its points drawn as tpe does");
  } else if (proposer == "passive") {
    program.passive = true;
  } else if (proposer != "random") {
    return field->error(fmt::format(
        "wanted random, sequence, hyperband, bohb, hyperopt, spearmint or passive, found '{}'",
        clip(proposer)));
  }
  return {};
}

Status read_resource(const Field& root, AuptimizerExperiment& experiment) {
  Program& program = experiment.program;
  BERTH_ASSIGN(const Field field, root.get("resource"));
  BERTH_ASSIGN(const std::string resource, field.text());
  BERTH_ASSIGN(program.parallel, integer_or(root, "n_parallel", 1, 1));
  if (resource == "passive") {
    program.passive = true;
    program.parallel = 1;  // as there: one at a time
  } else if (resource == "gpu") {
    program.resources.set(Known::gpu, 1);
  } else if (resource == "node" || resource == "aws" || resource == "slurm") {
    BERTH_TRY(read_elsewhere(root, resource, experiment));
  } else if (resource != "cpu") {
    return field.error(
        fmt::format("wanted cpu, gpu, passive, node, aws or slurm, found '{}'", clip(resource)));
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
  if (stop.policy == EarlyStop::Policy::curve)
    experiment.notes.push_back(
        fmt::format("early_stop curve_fitting: stops what beats the best with less than {:.3g}",
                    stop.probability));
  experiment.program.early_stop = stop;
  return {};
}

Status read_resource_arguments(const Field& field, AuptimizerExperiment& experiment) {
  BERTH_ASSIGN(experiment.program.save_best, flag(field, "save_model"));
  if (const auto stop = field.find("early_stop")) BERTH_TRY(read_early_stop(*stop, experiment));
  if (const auto labels = field.find("multi_res_labels")) {
    BERTH_ASSIGN(const auto items, labels->items());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < items.size(); ++i) {
      BERTH_ASSIGN(const std::string label, items[i].text());
      names.push_back(fmt::format("{} is score_{}", clip(label), i + 2));
    }
    if (!names.empty()) experiment.notes.push_back("multi_res_labels: " + join(names, ", "));
  }
  return {};
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
  // What stands before and behind the script is not ours to be strict with.
  program.run.shell.assign(exec::kPlainShell.begin(), exec::kPlainShell.end());
  program.run_line = field.node().line;
  const auto arguments = root.find("runtime_args");
  if (!arguments) return {};
  if (const auto env = arguments->find("env"))
    BERTH_TRY(exec::read_environment(*env, program.environment));
  if (const auto before = arguments->find("prescript")) {
    BERTH_ASSIGN(const std::string text, exec::process_text(*before));
    if (!text.empty()) program.run.text = text + "\n" + program.run.text;
  }
  if (const auto after = arguments->find("postscript")) {
    BERTH_ASSIGN(const std::string text, exec::process_text(*after));
    if (!text.empty())
      program.run.text += fmt::format("\nberth_status=$?\n{}\nexit $berth_status", text);
  }
  return {};
}

Status read_failures(const Field& root, Program& program) {
  program.stop_on_failure = true;  // as there, unless it is told otherwise
  const auto field = root.find("job_failure");
  if (!field) return {};
  BERTH_ASSIGN(const bool ignored, flag(*field, "ignore_fail"));
  program.stop_on_failure = !ignored;
  BERTH_ASSIGN(const std::int64_t retries, integer_or(*field, "job_retries", 0, 0));
  program.retries = static_cast<int>(std::min<std::int64_t>(retries, 1000));
  return {};
}

Status note_the_rest(const Field& root, AuptimizerExperiment& experiment) {
  BERTH_ASSIGN(const auto entries, root.entries());
  std::vector<std::string> unused;
  for (const auto& [key, value] : entries) {
    const bool budget = experiment.program.search.budget.has_value();
    const bool used = budget && (key == "eta" || key == "max_iter" || key.ends_with("_budget"));
    if (!among(kKnown, key) && !used) unused.push_back(clip(key, 32));
  }
  if (!unused.empty())
    experiment.notes.push_back("passed over, as nothing here corresponds to it: " +
                               clip(join(unused, ", "), 400));
  return {};
}

}  // namespace

bool is_auptimizer(std::string_view text) {
  const auto root = Field::parse(text, "");
  return root && root->is_map() && root->find("script") && !root->find("run");
}

Result<AuptimizerExperiment> read_auptimizer(std::string_view text, const std::string& file) {
  BERTH_ASSIGN(const Field root, Field::parse(text, file));
  AuptimizerExperiment experiment;
  Program& program = experiment.program;
  program.kind = "experiment";
  program.auptimizer = true;
  const auto name = root.find("name");
  program.name = name_of(name && name->text() ? *name->text() : file);
  BERTH_TRY(read_script(root, experiment));
  BERTH_TRY(read_proposer(root, experiment));
  BERTH_TRY(read_parameters(root, program));
  BERTH_TRY(read_resource(root, experiment));
  Goal goal{.metric = "score"};
  BERTH_ASSIGN(const std::size_t target, choice_or(root, "target", kTargets));
  goal.maximize = target == 0;
  program.goal = goal;
  if (const auto arguments = root.find("resource_args"))
    BERTH_TRY(read_resource_arguments(*arguments, experiment));
  if (program.search.budget && program.early_stop) {
    program.early_stop.reset();
    experiment.notes.emplace_back("early_stop: passed over, the proposer stops trials itself");
  }
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
      return gpu.error("wanted one GPU's number");
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
