#include "berth/run/flows/long_starts.h"

#include <algorithm>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/environment.h"
#include "berth/exec/long_command.h"
#include "berth/os/env.h"
#include "berth/run/drive/workload.h"

namespace berth::run {
namespace {

/// A larger flow is not gone through: a check is to be fast.
constexpr std::int64_t kMostTasksChecked = 20'000;

std::string bytes(std::size_t size) {
  return format_bytes(static_cast<std::int64_t>(size));
}

/// What is too long about the start of the task; "": nothing.
std::string describe_length(const flow::TaskSpec& spec) {
  const auto most = os::most_of_one_argument(), all = os::most_of_all_arguments();
  std::size_t total = 0, longest = 0;
  for (const auto& word : spec.command) {
    total += word.size() + 1 + sizeof(char*);
    longest = std::max(longest, word.size() + 1);
  }
  const auto script = exec::long_script(spec.command, most);
  std::string text;
  if (script && total < all)
    text = fmt::format("its command has {}, so its shell reads it from a file", bytes(total));
  else if (script)
    text = fmt::format(
        "its command has {}: a program in it that takes all of that as arguments fails "
        "(Argument list too long, at {}); give it the paths in a file, such as by "
        "printf '%s\\n' {{in.x}} > list, or use xargs or a script",
        bytes(total), bytes(all));
  else if (longest > most)
    text = fmt::format(
        "it cannot start: an argument has {}, and Linux takes at most {}; use a "
        "script, which reads {}",
        bytes(longest), bytes(most), flow::kTaskFile);
  else if (total >= all)
    text = fmt::format(
        "it cannot start: its arguments have {}, and this machine takes at most {}; "
        "use a script, which reads {}",
        bytes(total), bytes(all), flow::kTaskFile);
  exec::Environment environment = spec.environment;
  for (const auto& [name, value] : spec.params)
    exec::set(environment, parameter_variable(name), value);
  const auto left_out = exec::leave_out_long({}, environment, most, all);
  if (left_out.empty()) return text;
  return fmt::format("{}{}{} {} too long for the environment and left out; {} has {}", text,
                     text.empty() ? "" : "; ", join(left_out, ", "),
                     left_out.size() == 1 ? "is" : "are",
                     spec.script.empty() ? "{params_file}" : flow::kTaskFile,
                     left_out.size() == 1 ? "it" : "them");
}

/// The files that the task is declared to write; nullopt where they cannot be known.
std::optional<std::vector<fileset::Fileset>> expected_outputs(const flow::TaskSpec& spec) {
  std::vector<fileset::Fileset> outputs;
  for (const auto& output : spec.outputs) {
    if (output.directory) return std::nullopt;
    fileset::Entry file;
    file.path = ".";
    outputs.push_back({{file}});
  }
  return outputs;
}

}  // namespace

flow::Words notes_of_long_starts(os::Env& env, const flow::Graph& built,
                                 const std::string& directory, Answers answers) {
  flow::Words notes;
  if (built.known() > kMostTasksChecked) return notes;
  // The answers are a copy: what the run asks later may be answered otherwise by then.
  auto graph = flow::Graph::build(built.flow(), world_of(env, directory, answers));
  if (!graph) return notes;
  std::set<std::string> noted;
  while (graph->known() <= kMostTasksChecked) {
    const auto ready = graph->take_ready();
    if (!ready || ready->run.empty()) break;
    for (const auto task : ready->run) {
      const auto spec = graph->spec(task);
      if (!spec) continue;
      const auto& step =
          graph->flow().steps.at(static_cast<std::size_t>(graph->step_of(task).value));
      if (!noted.contains(step.name))
        if (const auto text = describe_length(*spec); !text.empty()) {
          noted.insert(step.name);
          notes.push_back(
              fmt::format("{}:{}: task {}: {}", step.file, step.run_line, spec->name, text));
        }
      auto outputs = expected_outputs(*spec);
      if (outputs && !graph->finish(task, *std::move(outputs))) return notes;
    }
  }
  return notes;
}

}  // namespace berth::run
