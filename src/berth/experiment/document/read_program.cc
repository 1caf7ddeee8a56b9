#include <algorithm>
#include <array>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/fields.h"
#include "berth/exec/formats.h"
#include "berth/experiment/document/format.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/proposers/automatic.h"
#include "berth/experiment/proposers/population.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

// What stands for something in a command beside the parameters.
constexpr std::array<std::string_view, 3> kOwnNames{"params_file", "checkpoint", "save"};
constexpr std::size_t kMostFaults = 20;  // of a file, that are told at once

bool is_pbt(const Program& program) {
  return program.search.method == Search::Method::pbt;
}

/// Where a trial runs and how long, each key for itself.
void read_limits(const Field& root, Program& program, Faults& faults) {
  bool named = false;
  if (const auto field = root.find("resources")) {
    faults.take(named, exec::read_resources(*field, program.resources, program.selection));
    program.resources_line = field->node().line;
  }
  if (!named && !program.passive) program.resources.set(Known::cpu, 1000);
  if (program.passive) program.parallel = 1;  // of one person
  if (const auto field = root.find("parallel"))
    faults.take(program.parallel, exec::integer_within(*field, 1, kMostTrials));
  if (const auto field = root.find("timeout"))
    faults.take(program.timeout, exec::time_limit_of(*field));
  if (const auto field = root.find("grace")) faults.take(program.grace, exec::duration_of(*field));
  faults.take(program.enforce, exec::read_enforce(root, false));
  if (const auto field = root.find("retries")) {
    std::int64_t retries = 0;
    faults.take(retries, exec::integer_within(*field, 0, exec::kMostRetries));
    program.retries = static_cast<int>(retries);
  }
  faults.add(exec::read_gpu_mem_over(root, program.gpu_mem_over));
  if (const auto field = root.find("priority"))
    faults.take(program.priority,
                exec::integer_within(*field, -exec::kMostPriority, exec::kMostPriority));
  for (const auto& [key, flag] :
       {std::pair("checkpoints", &Program::checkpoints), {"save_best", &Program::save_best}}) {
    std::size_t set = 0;
    faults.take(set, choice_or(root, key, kNoYes));
    program.*flag = set == 1;
  }
  if (program.save_best && !root.find("goal"))
    faults.add(root.find("save_best")->error("a goal is needed to find the best trial"));
  const auto named_in_run = exec::placeholders(program.run);
  const bool keeps = program.checkpoints || program.passive ||
                     std::ranges::find(named_in_run, "checkpoint") != named_in_run.end();
  if (is_pbt(program) && !keeps)
    faults.add(
        root.find("search")->error("with pbt, trials continue from the checkpoints of others: use "
                                   "{checkpoint} in 'run', or write checkpoints: true"));
  faults.take(program.stop_on_failure, exec::read_on_failure(root, false));
  faults.take(program.allow_failures, exec::read_allow_failures(root, 0));
}

/// All that a trial of it may have.
std::vector<std::string> parameters_of(const Program& program) {
  std::vector<std::string> names;
  if (program.search.budget) names.push_back(program.search.budget->parameter);
  for (const auto& parameter : program.params) names.push_back(parameter.name);
  // Of a sequence, those that only some points name; of pbt, kParent.
  names.insert(names.end(), program.optional.begin(), program.optional.end());
  for (const auto& point : program.search.points)
    for (const auto& [name, value] : point)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

Status check_placeholders(const Field& run, const Program& program) {
  std::vector<std::string> names = parameters_of(program);
  names.insert(names.end(), kOwnNames.begin(), kOwnNames.end());
  if (const auto wrong = exec::nearly_named(program.run, names); !wrong.empty())
    return run.error(wrong);
  const auto known = [&](std::string_view name) -> std::optional<std::string> {
    if (std::ranges::find(names, name) != names.end()) return "";
    return std::nullopt;
  };
  if (const auto text = exec::misplaced_text(program.run, known); !text.empty())
    return run.error(text);
  return {};
}

std::string stem(std::string_view file) {
  const auto slash = file.find_last_of('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string(file.substr(0, file.find('.')));
}

void read_head(const Field& root, const std::string& file, Program& program, Faults& faults) {
  program.name = stem(file);
  if (const auto name = root.find("name")) {
    if (faults.take(program.name, name->text()) && !valid_name(program.name))
      faults.add(
          name->error("a name is made of letters, digits, '_', '.' and '-', at most 64, and "
                      "begins with a letter or digit"));
  } else if (!valid_name(program.name)) {
    program.name = "run";
  }
  if (const auto passive = root.find("passive")) {
    std::size_t is = 0;
    faults.take(is, passive->choice(kNoYes));
    program.passive = is == 1;
  }
  faults.add(exec::read_labels(root, program.labels));
  faults.take(program.notify, exec::read_notify(root));
  const auto cluster = root.find("cluster");
  if (cluster) faults.take(program.clusters, exec::read_names(*cluster));
  if (cluster && program.passive)
    faults.add(cluster->error("passive trials run where they are asked for"));
}

void read_input(const Field& root, Program& program, Faults& faults) {
  const auto input = root.find("stdin");
  if (!input || !faults.take(program.input, exec::process_text(*input))) return;
  program.input_line = input->node().line;
  if (program.input.empty() || program.input == "-")
    faults.add(input->error("expected the path of a file"));
  if (program.passive)
    faults.add(input->error("passive trials have no process that could read it"));
}

/// Refuses a search that learns from the goal in a program that has no goal.
std::unexpected<Error> refuse_without_goal(const Field& search) {
  constexpr std::string_view kGoalExample = "goal: {metric: NAME, direction: max}";
  const auto method = search.find("method");
  if (method)
    if (const auto name = method->text(); name && *name != "auto")
      return search.error(fmt::format("method {} requires a goal; add {}", *name, kGoalExample));
  return search.error(
      fmt::format("{} requires a goal: Berth selects a method that learns from it; add {}, or "
                  "name a method that needs no goal, such as method: random",
                  method ? "method auto" : "a search without a method", kGoalExample));
}

/// What is tried, and by which command.
void read_trials(const Field& root, Program& program, Faults& faults) {
  const auto run = root.find("run");
  if (run && faults.take(program.run, exec::read_command(*run)))
    program.run_line = run->node().line;
  else if (!run && !program.passive && faults.none())  // a misspelt key may be it
    faults.add(root.error("'run' is missing"));
  faults.take(program.run.shell, exec::read_shell(root, {}));
  const auto params = root.find("params");
  const bool read = !params || faults.add(read_params(*params, program));
  const bool search_read = faults.add(read_search(root, program));
  program.search.proposer.shell = program.run.shell;
  if (run && read && search_read) faults.add(check_placeholders(*run, program));
  faults.add(read_goals(root, program));
  if (search_read && adaptive(program.search) && !root.find("goal"))
    faults.add(refuse_without_goal(*root.find("search")));
  if (program.passive && !root.find("goal"))
    faults.add(root.find("passive")->error(
        "which metric does each trial report? Give goal: {metric: NAME}"));
}

/// What is probably not meant: a name in braces that is no parameter, and a parameter that stands
/// nowhere in the command.
void note_placeholders(const std::string& file, Program& program) {
  const auto note = [&](std::string text) {
    program.notes.push_back(fmt::format("{}:{}: {}", file, program.run_line, std::move(text)));
  };
  const auto parameters = parameters_of(program);
  const auto named = exec::placeholders(program.run);
  const auto is_named = [&](std::string_view name) {
    return std::ranges::find(named, name) != named.end();
  };
  std::string text = program.run.text;
  for (const auto& word : program.run.words) text += word + "\n";
  if (text.empty() || parameters.empty()) return;
  for (const auto& name : named)
    if (std::ranges::find(parameters, name) == parameters.end() &&
        std::ranges::find(kOwnNames, name) == kOwnNames.end())
      note(fmt::format(
          "{{{}}} is not a parameter, so it stays as it is in the command; the parameters are {}",
          name, clip(join(parameters, ", "), 200)));
  if (is_named("params_file") || text.find("BERTH_PARAM") != std::string::npos) return;
  for (const auto& name : parameters)
    if (!is_named(name) && !(is_pbt(program) && name == kParent))
      note(fmt::format(
          "the command does not use the parameter '{0}': unless it reads the BERTH_PARAM_ "
          "variable, the parameter has no effect; write {{{0}}} where it belongs",
          name));
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

Status Faults::status() const {
  if (errors_.empty()) return {};
  // Each line begins with "file:line: "; a part may have told several.
  std::vector<std::pair<std::int64_t, std::string>> lines;
  for (const auto& error : errors_)
    for (const auto text : split(error.message, '\n')) {
      const auto end = text.find(": ");
      const auto begin = end == std::string_view::npos ? end : text.rfind(':', end - 1);
      const auto line = begin == std::string_view::npos
                            ? Result<std::int64_t>(0)
                            : parse_integer(text.substr(begin + 1, end - begin - 1));
      lines.emplace_back(line ? *line : 0, text);
    }
  std::ranges::stable_sort(lines, {}, [](const auto& each) { return each.first; });
  std::string all;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostFaults); ++i)
    all += (i == 0 ? "" : "\n") + lines[i].second;
  if (lines.size() > kMostFaults) all += fmt::format("\n… and {} more", lines.size() - kMostFaults);
  return fail(errors_.front().kind, "{}", all);
}

Result<Program> read_program(std::string_view text, const std::string& file) {
  BERTH_ASSIGN(const Field root, Field::parse(text, file));
  if (root.is_null()) return root.error("the file is empty");
  if (!root.is_map())
    return root.error("expected keys and values: run: COMMAND (an experiment), or steps: (a flow)");
  Program program;
  program.kind = "experiment";
  Faults faults;
  faults.add(root.unknown_keys(kExperimentFormat));
  read_head(root, file, program, faults);
  read_trials(root, program, faults);
  if (const auto env = root.find("env"))
    faults.add(exec::read_environment(*env, program.environment));
  read_input(root, program, faults);
  read_limits(root, program, faults);
  BERTH_TRY(faults.status());
  if (program.search.method == Search::Method::automatic)
    program.notes.push_back(why_chosen(program));
  if (is_pbt(program) && !root.find("search")->find("explore"))
    program.notes.push_back(
        fmt::format("pbt changes {} when it copies; all other parameters keep their values (to "
                    "change that: explore: [NAME, …])",
                    join(program.search.explore, " and ")));
  note_placeholders(file, program);
  if (const auto trials = count_trials(program); !trials)
    return root.find(root.find("params") ? "params" : "search")->error(trials.error());
  return program;
}

}  // namespace berth::experiment
