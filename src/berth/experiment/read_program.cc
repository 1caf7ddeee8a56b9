#include <algorithm>
#include <array>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/fields.h"
#include "berth/experiment/automatic.h"
#include "berth/experiment/reading.h"
#include "berth/experiment/space.h"

namespace berth::experiment {
namespace {

Status read_limits(const Field& root, Program& program) {
  bool named = false;
  if (const auto field = root.find("resources")) {
    BERTH_ASSIGN(named, exec::read_resources(*field, program.resources, program.selection));
    program.resources_line = field->node().line;
  }
  if (!named && !program.passive) program.resources.set(Known::cpu, 1000);
  if (program.passive) program.parallel = 1;  // of one person
  if (const auto field = root.find("parallel")) {
    BERTH_ASSIGN(program.parallel, exec::integer_within(*field, 1, kMostTrials));
  }
  if (const auto field = root.find("timeout")) {
    BERTH_ASSIGN(program.timeout, exec::time_limit_of(*field));
  }
  if (const auto field = root.find("grace")) {
    BERTH_ASSIGN(program.grace, exec::duration_of(*field));
  }
  BERTH_ASSIGN(program.enforce, exec::read_enforce(root, false));
  if (const auto field = root.find("retries")) {
    BERTH_ASSIGN(const std::int64_t retries, exec::integer_within(*field, 0, 1000));
    program.retries = static_cast<int>(retries);
  }
  BERTH_TRY(exec::read_gpu_mem_over(root, program.gpu_mem_over));
  if (const auto field = root.find("priority")) {
    BERTH_ASSIGN(program.priority, exec::integer_within(*field, -1000, 1000));
  }
  for (const auto& [key, flag] :
       {std::pair("checkpoints", &Program::checkpoints), {"save_best", &Program::save_best}}) {
    BERTH_ASSIGN(const std::size_t set, choice_or(root, key, kNoYes));
    program.*flag = set == 1;
  }
  if (program.save_best && !program.goal)
    return root.find("save_best")->error("it takes a goal to tell which trial is the best");
  BERTH_ASSIGN(program.stop_on_failure, exec::read_on_failure(root, false));
  return {};
}

Status check_placeholders(const Field& run, const Program& program) {
  std::vector<std::string> names{"params_file", "checkpoint", "save"};
  if (program.search.budget) names.push_back(program.search.budget->parameter);
  for (const auto& parameter : program.params) names.push_back(parameter.name);
  for (const auto& point : program.search.points)
    for (const auto& [name, value] : point)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  if (const auto wrong = exec::nearly_named(program.run, names); !wrong.empty())
    return run.error(wrong);
  const auto known = [&](std::string_view name) -> std::optional<std::string> {
    if (std::ranges::find(names, name) != names.end()) return "";
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
  if (!root.is_map())
    return root.error("wanted keys and values: run: COMMAND (an experiment), or steps: (a flow)");
  BERTH_TRY(root.expect_keys({"name",      "run",     "resources",  "params",      "search",
                              "priority",  "env",     "goal",       "parallel",    "timeout",
                              "grace",     "retries", "on_failure", "checkpoints", "early_stop",
                              "save_best", "passive", "cluster",    "enforce",     "gpu_mem_over",
                              "shell",     "labels"}));
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
  if (const auto passive = root.find("passive")) {
    BERTH_ASSIGN(const std::size_t is, passive->choice(kNoYes));
    program.passive = is == 1;
  }
  BERTH_TRY(exec::read_labels(root, program.labels));
  if (const auto cluster = root.find("cluster")) {
    if (program.passive)
      return cluster->error("passive trials run wherever whoever asks for them is");
    BERTH_ASSIGN(program.clusters, exec::read_names(*cluster));
  }
  if (const auto run = root.find("run"); run || !program.passive) {
    BERTH_ASSIGN(const Field command, root.get("run"));
    BERTH_ASSIGN(program.run, exec::read_command(command));
    program.run_line = command.node().line;
  }
  BERTH_ASSIGN(program.run.shell, exec::read_shell(root, {}));
  if (const auto params = root.find("params")) BERTH_TRY(read_params(*params, program));
  BERTH_TRY(read_search(root, program));
  program.search.proposer.shell = program.run.shell;
  if (const auto run = root.find("run")) BERTH_TRY(check_placeholders(*run, program));
  BERTH_TRY(read_goals(root, program));
  if (program.passive && !program.goal)
    return root.find("passive")->error(
        "what is to be told of each trial? Give goal: {metric: NAME}");
  if (const auto env = root.find("env"))
    BERTH_TRY(exec::read_environment(*env, program.environment));
  BERTH_TRY(read_limits(root, program));
  if (program.search.method == Search::Method::automatic)
    program.notes.push_back(why_chosen(program));
  if (const auto trials = count_trials(program); !trials)
    return root.find(root.find("params") ? "params" : "search")->error(trials.error());
  return program;
}

}  // namespace berth::experiment
