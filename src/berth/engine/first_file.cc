#include "berth/engine/first_file.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/queries/trials.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostOptions = 16;

/// The text of a call's arguments, from behind its opening parenthesis to the one that closes it.
std::string_view arguments_at(std::string_view text, std::size_t from) {
  int depth = 1;
  char quote = 0;
  for (std::size_t at = from; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if ((c == ')' || c == ']') && --depth == 0) {
      return text.substr(from, at - from);
    }
  }
  return {};
}

/// The first text in quotes that begins with two dashes: the option's long name.
std::string long_name(std::string_view arguments) {
  for (const char quote : {'"', '\''}) {
    const auto begin = arguments.find(std::string(1, quote) + "--");
    if (begin == arguments.npos) continue;
    const auto end = arguments.find(quote, begin + 1);
    if (end != arguments.npos) return std::string(arguments.substr(begin + 1, end - begin - 1));
  }
  return "";
}

/// What stands behind `key=`, up to the next comma that is in no brackets.
std::string_view value_of_key(std::string_view arguments, std::string_view key) {
  for (std::size_t at = 0; (at = arguments.find(key, at)) != arguments.npos; ++at) {
    const bool begins = at == 0 || arguments[at - 1] == ' ' || arguments[at - 1] == ',' ||
                        arguments[at - 1] == '\n';
    std::size_t from = arguments.find_first_not_of(' ', at + key.size());
    if (!begins || from == arguments.npos || arguments[from] != '=') continue;
    int depth = 0;
    std::size_t to = ++from;
    for (; to < arguments.size(); ++to) {
      if (arguments[to] == '[' || arguments[to] == '(') ++depth;
      if (arguments[to] == ']' || arguments[to] == ')') --depth;
      if (arguments[to] == ',' && depth == 0) break;
    }
    return trim(arguments.substr(from, to - from));
  }
  return {};
}

bool is_list_of_scalars(std::string_view text) {
  return text.size() > 2 && text.starts_with('[') && text.ends_with(']') &&
         text.find_first_of("[({\n", 1) == text.npos && text.find(" for ") == text.npos &&
         text.find_first_not_of(", ", 1) != text.size() - 1;
}

/// Returns whether one of the words that '_' joins in `name` is among `words`.
bool has_word(std::string_view name, std::span<const std::string_view> words) {
  const std::string whole = lower(name);
  return std::ranges::any_of(split(whole, '_'), [&](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  });
}

/// Words of options that a search leaves at their default: they set the length of a trial, its
/// seed or its machine, and more epochs score better at a higher cost.
constexpr auto kNotSearched = std::to_array<std::string_view>(
    {"epoch", "epochs", "step",    "steps",  "iter",    "iters",    "iteration", "iterations",
     "seed",  "worker", "workers", "thread", "threads", "interval", "every",     "port",
     "rank",  "gpu",    "gpus",    "device", "devices", "verbose",  "patience",  "timeout"});
constexpr auto kDropouts =
    std::to_array<std::string_view>({"drop", "dropout", "droprate", "dropconnect", "droppath"});

/// Returns a range around the default of a float option. A dropout and a default near 1, such as a
/// momentum, get a linear scale; other positive numbers, such as a learning rate, a logarithmic
/// one.
std::string range_of_float(std::string_view name, double initial) {
  constexpr double kHighestDropout = 0.5;
  constexpr double kNearOne = 0.5;
  if (has_word(name, kDropouts) && initial >= 0 && initial <= 1)
    return fmt::format("{{min: 0, max: {:.6g}}}", std::max(kHighestDropout, initial));
  if (initial <= 0) return "";
  if (initial >= kNearOne && initial < 1)
    return fmt::format("{{min: {:.6g}, max: {:.6g}}}", 1 - 2 * (1 - initial),
                       1 - (1 - initial) / 10);
  return fmt::format("{{min: {:.6g}, max: {:.6g}, scale: log}}", initial / 10,
                     initial < 1 ? std::min(1.0, initial * 10) : initial * 10);
}

/// Returns the values to search for the option `name` with this type and default, as YAML; "" if
/// the option keeps its default.
std::string values_of(std::string_view name, std::string_view arguments) {
  if (has_word(name, kNotSearched)) return "";
  const auto choices = value_of_key(arguments, "choices");
  if (is_list_of_scalars(choices)) return std::string(choices);
  const auto type = value_of_key(arguments, "type");
  const auto number = parse_number(value_of_key(arguments, "default"));
  if (!number) return "";
  if (type == "float") return range_of_float(name, *number);
  if (type != "int" || *number <= 0) return "";
  const auto whole = static_cast<std::int64_t>(std::min(*number, 1e15));
  if (whole < 2) return "[1, 2, 3]";
  return fmt::format("[{}, {}, {}]", whole / 2, whole, whole * 2);
}

std::string parameter_of(std::string_view option) {
  std::string name(option.substr(2));
  std::ranges::replace(name, '-', '_');
  const bool valid =
      !name.empty() && name.size() <= 64 && std::isalpha(name.front()) != 0 && name != "index" &&
      name != "params_file" &&
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return valid ? name : "";
}

/// The command with the options that are tried, and the parameters that it names.
struct Sweep {
  std::string command, params;
  bool has_range = false;
};

Sweep sweep_of(const std::optional<Script>& script) {
  Sweep sweep;
  if (!script) {
    sweep.command = "echo ::berth score={x}";
    sweep.params = "  x: [1, 2, 3]\n";
    return sweep;
  }
  sweep.command = script->command;
  for (const auto& option : script->options) {
    if (option.values.empty()) continue;
    sweep.command += fmt::format(" {} {{{}}}", option.option, option.name);
    sweep.params += fmt::format("  {}: {}\n", option.name, option.values);
    sweep.has_range |= option.values.starts_with('{');
  }
  return sweep;
}

std::string goal_of(const std::optional<Script>& script) {
  const std::string metric = !script ? "score" : script->metric;
  if (metric.empty())
    return "# The score of a trial, which its script prints as a line:  ::berth accuracy=0.93\n"
           "# goal: {metric: accuracy, direction: max}\n";
  return fmt::format(
      "# The score of a trial, which it prints as a line:  ::berth {0}=…\n"
      "goal: {{metric: {0}, direction: {1}}}\n",
      metric, engine::lower_is_better(metric) ? "min" : "max");
}

std::string left_out(const std::optional<Script>& script) {
  std::vector<std::string> names;
  if (script)
    for (const auto& option : script->options)
      if (option.values.empty()) names.push_back(option.option);
  return names.empty() ? "" : fmt::format("# Left as they are: {}.\n", join(names, ", "));
}

}  // namespace

std::vector<ScriptOption> options_of_script(std::string_view text) {
  std::vector<ScriptOption> options;
  for (const std::string_view call : {"add_argument(", "click.option("})
    for (std::size_t at = 0;
         (at = text.find(call, at)) != text.npos && options.size() < kMostOptions;
         at += call.size()) {
      const auto arguments = arguments_at(text, at + call.size());
      const std::string option = long_name(arguments);
      if (option.empty()) continue;
      const std::string name = parameter_of(option);
      const bool known = std::ranges::find(options, name, &ScriptOption::name) != options.end();
      if (!name.empty() && !known) options.push_back({option, name, values_of(name, arguments)});
    }
  return options;
}

std::string metric_of_script(std::string_view text) {
  constexpr std::string_view kMark = "::berth ";
  const auto mark = text.find(kMark);
  if (mark == text.npos) return "";
  const auto line = text.substr(mark + kMark.size(), text.find('\n', mark) - mark - kMark.size());
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  std::string first;
  for (std::size_t equals = 0; (equals = line.find('=', equals)) != line.npos; ++equals) {
    std::size_t from = equals;
    while (from > 0 && is_letter(line[from - 1])) --from;
    const std::string name(line.substr(from, equals - from));
    if (name.empty() || (from > 0 && line[from - 1] != ' ')) continue;
    if (first.empty()) first = name;
    if (!engine::counts_progress(name)) return name;
  }
  return first;
}

std::string first_experiment(const std::string& name, const std::optional<Script>& script) {
  const Sweep sweep = sweep_of(script);
  std::string text = fmt::format(
      "# An experiment: one command, tried with many values of its parameters.\n"
      "#   berth run --plan FILE   what would run, and nothing runs\n"
      "#   berth run FILE          runs it; Ctrl-C stops it, berth resume continues it\n"
      "# All keys: man berth-experiment\n"
      "name: {}\n"
      "\n"
      "# {{NAME}} is replaced by the value of the parameter NAME.\n"
      "run: {}\n",
      name, sweep.command);
  text += left_out(script);
  text += sweep.params.empty()
              ? "\n# What is tried: a list, or a range.\n"
                "# params:\n#   lr: {min: 1e-4, max: 1e-1, scale: log}\n#   width: [16, 32, 64]\n"
              : "\n# What is tried: a list, or a range such as {min: 1, max: 9, type: "
                "int}.\nparams:\n" +
                    sweep.params;
  text += sweep.has_range
              ? "\n# How: random, sobol, tpe, gp and more; without a method it is chosen for you.\n"
                "search: {method: random, samples: 20, seed: 1}\n"
              : "\n# How: every combination, unless another method is named.\n"
                "# search: {method: random, samples: 20, seed: 1}\n";
  return text + "\n" + goal_of(script) +
         "\n"
         "# What one trial takes; as many run in parallel as fit. Also gpu: 1, gpu_mem: 10G.\n"
         "resources: {cpu: 1, mem: 1G}\n"
         "# timeout: 1h\n"
         "# retries: 1\n";
}

std::string first_flow(const std::string& name, const std::string& extension) {
  const bool own = extension.empty();
  std::string text = fmt::format(
      "# A flow: steps that read files and write files. Steps whose inputs have not changed do not "
      "run again.\n"
      "#   berth run --plan FILE   what would run, and nothing runs\n"
      "#   berth run FILE          runs it, as many tasks in parallel as fit\n"
      "# All keys: man berth-flow\n"
      "name: {}\n"
      "\n"
      "steps:\n",
      name);
  if (own)
    text +=
        "  make:\n"
        "    run: seq 9 > {out.numbers}\n"
        "    out: {numbers: berth-out/numbers.txt}\n\n";
  text += fmt::format(
      "  # One task for each file; its name without the extension is {{file.stem}}.\n"
      "  count:\n"
      "    foreach: {{file: {}}}\n"
      "    run: wc -l < {{file}} > {{out.lines}}\n"
      "    out: {{lines: 'berth-out/{{file.stem}}.lines'}}\n"
      "    resources: {{cpu: 1, mem: 100M}}\n\n"
      "  # It waits for all of them.\n"
      "  sum:\n"
      "    in: {{lines: count.lines}}\n"
      "    run: cat {{in.lines}} | awk '{{s += $1}} END {{print s}}' > {{out.total}}\n"
      "    out: {{total: berth-out/total.txt}}\n",
      own ? "make.numbers" : "'*." + extension + "'");
  return text;
}

std::string first_fleet() {
  return R"json(// A fleet: how many of which accelerator do these servers need, at the lowest cost?
//   berth plan FILE                the plan
//   berth plan FILE --candidates   each server on each accelerator, and what limits it
// All keys: man berth-fleet. Money is in cents an hour, times in ms, loads in requests a minute.
{
  // The accelerators that can be used: memSize in GB, memBW in GB/s.
  "accelerators": [
    {"name": "L4", "type": "L4", "multiplicity": 1, "memSize": 24, "memBW": 300, "cost": 55},
    {"name": "H100", "type": "H100", "multiplicity": 1, "memSize": 80, "memBW": 3350, "cost": 310}
  ],

  // The number of units of each type.
  "count": [
    {"type": "L4", "count": 12},
    {"type": "H100", "count": 2}
  ],

  // The speed of a model on each: a step takes alpha + beta * requests + gamma * tokens that they
  // attend to, in ms. berth fit RESULTS -o FILE writes these numbers from benchmark results.
  // A replica takes accCount accelerators. maxBatchSize requests of atTokens tokens fit its memory.
  "models": [
    {"name": "chat-8b", "acc": "L4", "accCount": 1, "maxBatchSize": 32, "atTokens": 1024,
     "perfParms": {"alpha": 77.7, "beta": 0.294, "gamma": 0.0007111}},
    {"name": "chat-8b", "acc": "H100", "accCount": 1, "maxBatchSize": 256, "atTokens": 1024,
     "perfParms": {"alpha": 8.3, "beta": 0.036, "gamma": 0.0000637}}
  ],

  // The latency targets: the time between tokens (slo-itl) and until the first one (slo-ttft).
  "serviceClasses": [
    {"name": "Interactive", "priority": 1, "modelTargets": [
      {"model": "chat-8b", "slo-itl": 120, "slo-ttft": 2000}]}
  ],

  // The servers and their load. maxQueueSize is the number of requests that may wait at a replica;
  // further ones are rejected. Without it (0), a replica rejects requests when its batch is full.
  // Real lengths vary: add inTokensCv and outTokensCv, standard deviation / mean, to the load.
  "servers": [
    {"name": "assistant", "class": "Interactive", "model": "chat-8b", "minNumReplicas": 1,
     "maxQueueSize": 64,
     "currentAlloc": {"load": {"arrivalRate": 300, "avgInTokens": 700, "avgOutTokens": 250}}}
  ]
}
)json";
}

}  // namespace berth::engine
