#include <algorithm>
#include <array>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/fields.h"
#include "berth/experiment/program.h"

namespace berth::experiment {
namespace {

constexpr std::array<std::string_view, 2> kScales{"linear", "log"};
constexpr std::array<std::string_view, 2> kTypes{"float", "int"};
constexpr std::array<std::string_view, 2> kMethods{"grid", "random"};
constexpr std::array<std::string_view, 2> kDirections{"max", "min"};
constexpr std::array<std::string_view, 2> kOnFailure{"continue", "stop"};
constexpr double kGreatestInteger = 9007199254740992.0;  // 2^53: exact in a double

Result<std::size_t> choice_or(const Field& map, std::string_view key,
                              std::span<const std::string_view> choices) {
  const auto field = map.find(key);
  return field ? field->choice(choices) : 0;
}

bool valid_parameter_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 64 && !(name[0] >= '0' && name[0] <= '9') &&
         name != "params_file" && name != "index" && std::ranges::all_of(name, allowed);
}

Result<Parameter> read_range(const std::string& name, const Field& field) {
  BERTH_TRY(field.expect_keys({"min", "max", "scale", "type", "n"}));
  Parameter parameter{.name = name, .choices = {}};
  BERTH_ASSIGN(const Field min, field.get("min"));
  BERTH_ASSIGN(const Field max, field.get("max"));
  BERTH_ASSIGN(parameter.min, min.number());
  BERTH_ASSIGN(parameter.max, max.number());
  if (parameter.min > parameter.max) return max.error("max is below min");
  BERTH_ASSIGN(const std::size_t scale, choice_or(field, "scale", kScales));
  parameter.scale = static_cast<Parameter::Scale>(scale);
  if (parameter.scale == Parameter::Scale::log && parameter.min <= 0)
    return min.error("a log scale takes a min above 0");
  BERTH_ASSIGN(const std::size_t type, choice_or(field, "type", kTypes));
  parameter.integer = type == 1;
  if (parameter.integer) {
    for (const auto& [bound, value] : {std::pair(min, parameter.min), {max, parameter.max}})
      if (value != static_cast<double>(static_cast<std::int64_t>(
                       std::clamp(value, -kGreatestInteger, kGreatestInteger))))
        return bound.error("wanted a whole number, since type is int");
  }
  if (const auto points = field.find("n")) {
    BERTH_ASSIGN(parameter.points, exec::integer_within(*points, 1, kMostTrials));
  }
  return parameter;
}

Result<Parameter> read_parameter(const std::string& name, const Field& field) {
  if (!valid_parameter_name(name))
    return field.error(
        "a parameter's name is made of letters, digits and _, begins with none of "
        "the digits, and is neither params_file nor index");
  if (field.is_map()) return read_range(name, field);
  Parameter parameter{.name = name, .choices = {}};
  if (field.is_list()) {
    BERTH_ASSIGN(const auto items, field.items());
    for (const auto& item : items) {
      BERTH_ASSIGN(std::string text, exec::process_text(item));
      parameter.choices.push_back(std::move(text));
    }
    if (items.empty()) return field.error("the list of choices is empty");
  } else {
    BERTH_ASSIGN(std::string text, exec::process_text(field));
    parameter.choices.push_back(std::move(text));
  }
  return parameter;
}

Status read_search(const Field& root, Program& program) {
  const bool has_range = std::ranges::any_of(program.params, [](const Parameter& parameter) {
    return parameter.choices.empty() && !parameter.integer && parameter.points == 0;
  });
  const auto field = root.find("search");
  if (!field) {
    if (has_range)
      return root.find("params")->error(
          "a range is searched at random, or in n points; give search: {method: random, "
          "samples: 20}, or the range an n");
    return {};
  }
  BERTH_TRY(field->expect_keys({"method", "samples", "seed"}));
  BERTH_ASSIGN(const std::size_t method, choice_or(*field, "method", kMethods));
  program.search.method = static_cast<Search::Method>(method);
  if (const auto seed = field->find("seed")) {
    BERTH_ASSIGN(const std::int64_t value, exec::integer_within(*seed, 0, INT64_MAX));
    program.search.seed = static_cast<std::uint64_t>(value);
  }
  const auto samples = field->find("samples");
  if (samples) {
    BERTH_ASSIGN(program.search.samples, exec::integer_within(*samples, 1, kMostTrials));
  }
  if (program.search.method == Search::Method::random && !samples)
    return field->error("'samples' is missing: how many trials?");
  if (program.search.method == Search::Method::grid && samples)
    return samples->error("a grid takes every point; samples belong to method random");
  return {};
}

Status read_goal(const Field& field, Program& program) {
  BERTH_TRY(field.expect_keys({"metric", "direction"}));
  Goal goal;
  BERTH_ASSIGN(const Field metric, field.get("metric"));
  BERTH_ASSIGN(goal.metric, metric.text());
  BERTH_ASSIGN(const std::size_t direction, choice_or(field, "direction", kDirections));
  goal.maximize = direction == 0;
  program.goal = std::move(goal);
  return {};
}

Status read_limits(const Field& root, Program& program) {
  if (const auto field = root.find("resources")) {
    BERTH_TRY(exec::read_resources(*field, program.resources, program.slot_sizes));
    program.resources_line = field->node().line;
  }
  if (program.resources.empty()) program.resources.set(Known::cpu, 1000);
  if (const auto field = root.find("parallel")) {
    BERTH_ASSIGN(program.parallel, exec::integer_within(*field, 1, kMostTrials));
  }
  if (const auto field = root.find("timeout")) {
    BERTH_ASSIGN(program.timeout, exec::duration_of(*field));
  }
  if (const auto field = root.find("grace")) {
    BERTH_ASSIGN(program.grace, exec::duration_of(*field));
  }
  if (const auto field = root.find("retries")) {
    BERTH_ASSIGN(const std::int64_t retries, exec::integer_within(*field, 0, 1000));
    program.retries = static_cast<int>(retries);
  }
  if (const auto field = root.find("priority")) {
    BERTH_ASSIGN(program.priority, exec::integer_within(*field, -1000, 1000));
  }
  BERTH_ASSIGN(const std::size_t on_failure, choice_or(root, "on_failure", kOnFailure));
  program.stop_on_failure = on_failure == 1;
  return {};
}

Status check_placeholders(const Field& run, const Program& program) {
  const auto known = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "params_file" ||
        std::ranges::find(program.params, name, &Parameter::name) != program.params.end())
      return "";
    return std::nullopt;
  };
  if (const auto name = exec::misplaced_name(program.run, known); !name.empty())
    return run.error(fmt::format(
        "{{{}}} stands where the shell could take its value apart (in `…`, after a here-document, "
        "within ${{…'}}); use $(…), or a variable set before",
        name));
  return {};
}

std::string stem(std::string_view file) {
  const auto slash = file.find_last_of('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string(file.substr(0, file.find('.')));
}

}  // namespace

bool valid_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= 64 && letter(name[0]) &&
         std::ranges::all_of(name,
                             [&](char c) { return letter(c) || c == '_' || c == '.' || c == '-'; });
}

Result<Program> read_program(std::string_view text, const std::string& file) {
  BERTH_ASSIGN(const Field root, Field::parse(text, file));
  if (root.is_null()) return root.error("the file is empty");
  BERTH_TRY(root.expect_keys({"name", "run", "resources", "params", "search", "priority", "env",
                              "goal", "parallel", "timeout", "grace", "retries", "on_failure"}));
  Program program;
  program.kind = "experiment";
  program.name = stem(file);
  if (const auto name = root.find("name")) {
    BERTH_ASSIGN(program.name, name->text());
    if (!valid_name(program.name))
      return name->error(
          "a name is made of letters, digits, '_', '.' and '-', at most 64, and "
          "begins with a letter or digit");
  } else if (!valid_name(program.name)) {
    program.name = "run";
  }
  BERTH_ASSIGN(const Field run, root.get("run"));
  BERTH_ASSIGN(program.run, exec::read_command(run));
  program.run_line = run.node().line;
  if (const auto params = root.find("params")) {
    BERTH_ASSIGN(const auto entries, params->entries());
    for (const auto& [name, field] : entries) {
      BERTH_ASSIGN(Parameter parameter, read_parameter(name, field));
      for (const auto& earlier : program.params)
        if (lower(earlier.name) == lower(name))
          return field.error(fmt::format("'{}' and '{}' would share one BERTH_PARAM_ variable",
                                         earlier.name, name));
      program.params.push_back(std::move(parameter));
    }
  }
  BERTH_TRY(check_placeholders(run, program));
  BERTH_TRY(read_search(root, program));
  if (const auto goal = root.find("goal")) BERTH_TRY(read_goal(*goal, program));
  if (const auto env = root.find("env"))
    BERTH_TRY(exec::read_environment(*env, program.environment));
  BERTH_TRY(read_limits(root, program));
  if (const auto trials = count_trials(program); !trials)
    return root.find("params")->error(trials.error());
  return program;
}

}  // namespace berth::experiment
