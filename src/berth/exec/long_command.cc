#include "berth/exec/long_command.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::exec {
namespace {

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool contains(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_posix_shell(std::string_view word) {
  return contains({"sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "busybox"},
                  last_part(word));
}

bool is_other_shell(std::string_view word) {
  return contains({"fish", "csh", "tcsh"}, last_part(word));
}

/// Interpreters that run the file which follows their options, instead of the text after -c or -e.
bool is_interpreter(std::string_view word, char option) {
  const auto name = last_part(word);
  if (option == 'c') return name.starts_with("python") || name.starts_with("pypy");
  return contains({"perl", "ruby", "node", "nodejs", "Rscript", "julia", "lua"}, name);
}

/// The program that reads the word at `index` as its script: `bash -euo pipefail -c TEXT`. Between
/// the two are only options of the program, of which -o has an argument. "": none that is known.
std::string_view program_of_script(const std::vector<std::string>& line, std::size_t index) {
  const std::string& last = line[index - 1];
  if (last.size() < 2 || last[0] != '-' || last[1] == '-') return {};
  for (std::size_t i = index - 1; i-- > 0;) {
    const std::string& word = line[i];
    if (word.starts_with('-')) continue;
    if (i > 0 && line[i - 1].starts_with('-') && line[i - 1].ends_with('o')) continue;
    const bool knows = last.ends_with('c') ? is_posix_shell(word) || is_other_shell(word) ||
                                                 is_interpreter(word, 'c')
                                           : last.ends_with('e') && is_interpreter(word, 'e');
    return knows ? std::string_view(word) : std::string_view();
  }
  return {};
}

bool may_be_left_out(std::string_view name) {
  return name == "BERTH_PARAMS" || name.starts_with("BERTH_PARAM_") ||
         name.starts_with("BERTH_IN_") || name.starts_with("BERTH_OUT_");
}

std::size_t size_of(const Environment::value_type& variable) {
  return variable.first.size() + variable.second.size() + 2;  // "=" and NUL
}

}  // namespace

std::optional<std::size_t> long_script(const std::vector<std::string>& line, std::size_t most) {
  for (std::size_t i = 2; i < line.size(); ++i)
    if (line[i].size() >= most && !program_of_script(line, i).empty()) return i;
  return std::nullopt;
}

void read_script_from(std::vector<std::string>& line, std::size_t index, const std::string& file) {
  const auto program = program_of_script(line, index);
  if (is_posix_shell(program)) {
    line[index] = ". " + shell_quote(file);
  } else if (is_other_shell(program)) {
    line[index] = "source " + shell_quote(file);
  } else {
    line[index] = file;
    std::string& option = line[index - 1];
    option.pop_back();
    if (option == "-") line.erase(line.begin() + static_cast<std::ptrdiff_t>(index) - 1);
  }
}

std::vector<std::string> leave_out_long(const std::vector<std::string>& line,
                                        Environment& environment, std::size_t most_of_one,
                                        std::size_t most_of_all) {
  std::vector<std::string> names;
  std::size_t total = 0;
  for (const auto& word : line) total += word.size() + 1 + sizeof(char*);
  for (const auto& variable : environment) total += size_of(variable) + sizeof(char*);
  for (;;) {
    auto longest = environment.end();
    for (auto at = environment.begin(); at != environment.end(); ++at)
      if (may_be_left_out(at->first) &&
          (longest == environment.end() || size_of(*at) > size_of(*longest)))
        longest = at;
    if (longest == environment.end()) return names;
    const std::size_t size = size_of(*longest);
    if (size <= most_of_one && total < most_of_all) return names;
    total -= size + sizeof(char*);
    names.push_back(longest->first);
    environment.erase(longest);
  }
}

Result<Fitted> fit_limits(os::Env& env, const std::string& directory, const Launch& launch,
                          os::SpawnSpec& spec) {
  Fitted fitted;
  const auto most = os::most_of_one_argument();
  if (const auto index = long_script(spec.argv, most)) {
    const bool isolated = launch.container.isolated();
    fitted.file = isolated ? spec.directory + "/.berth-command"
                           : fmt::format("{}/command-{}", directory, launch.token.value);
    if (!isolated) BERTH_TRY(env.make_directory(directory, 0700));
    BERTH_TRY(env.replace_file(fitted.file, spec.argv[*index], 0600));
    read_script_from(spec.argv, *index, fitted.file);
  }
  fitted.left_out = leave_out_long(spec.argv, spec.environment, most, os::most_of_all_arguments());
  return fitted;
}

std::string describe(const Fitted& fitted) {
  if (fitted.left_out.empty()) return {};
  constexpr std::size_t kMostNames = 8;
  const auto shown = std::min(kMostNames, fitted.left_out.size());
  std::string names = join(std::span(fitted.left_out).first(shown), ", ");
  if (shown < fitted.left_out.size())
    names += fmt::format(" and {} more", fitted.left_out.size() - shown);
  return fmt::format(
      "too long for the environment and left out: {} (its values are in .berth-task.json of a "
      "script, in {{params_file}}, and in the file that BERTH_PARAMS_FILE names)",
      names);
}

}  // namespace berth::exec
