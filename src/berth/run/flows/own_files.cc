#include "berth/run/flows/own_files.h"

#include <algorithm>
#include <unordered_set>

#include "berth/base/text.h"
#include "berth/flow/notation.h"
#include "berth/flow/pattern.h"
#include "berth/run/drive/prepare.h"

namespace berth::run {
namespace {

/// The words of a command that look like files of its own: relative, with a dot or a slash, no
/// option, and nothing in them that a shell or we would replace.
flow::Words file_words(const exec::Command& command) {
  constexpr std::string_view kEnds = " \t\n|&;<>()'\"`=,";
  flow::Words found;
  const auto add = [&](std::string_view text) {
    while (!text.empty()) {
      const auto end = std::min(text.find_first_of(kEnds), text.size());
      const auto word = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (word.find_first_of("./") == std::string_view::npos || word.starts_with('-') ||
          word.starts_with('/') || word.find_first_of("{}$*?[~\\") != std::string_view::npos)
        continue;
      if (auto plain = flow::plain_path(word); plain && flow::stays_inside(*plain))
        found.push_back(*std::move(plain));
    }
  };
  for (const auto& word : command.words) add(word);
  if (command.words.empty()) add(command.text);
  return found;
}

}  // namespace

bool may_be_input(const flow::Step& step, std::string_view path) {
  const auto gives = [&](const flow::Source& source) {
    if (source.step) return true;  // what a step writes may be called anything
    const auto glob = flow::glob_of(source.pattern);
    return fileset::matches(glob, path) || path.starts_with(source.pattern + "/");
  };
  return std::ranges::any_of(
             step.in, [&](const auto& in) { return std::ranges::any_of(in.sources, gives); }) ||
         std::ranges::any_of(step.variables, [&](const auto& variable) {
           return variable.files && gives(*variable.files);
         });
}

Status check_own_program(os::Env& env, const flow::Step& step, const std::string& program,
                         const std::string& directory) {
  const auto path = flow::plain_path(program);
  if (!path) return {};  // what leads out of the directory is found when it starts, or not
  const bool there = env.status(directory + "/" + *path).has_value();
  if (may_be_input(step, *path)) {
    if (!there) return {};
    return check_executable(env, program, directory);
  }
  const std::string name = path->substr(path->rfind('/') + 1);
  return fail(
      ErrorKind::invalid,
      "{}: a task's directory only contains its inputs: declare {} as an input, in: {{{}: {}}}",
      program, there ? "the file" : "what makes it", name.substr(0, name.find('.')), *path);
}

flow::Words notes_of_own_files(os::Env& env, const flow::Flow& flow, const std::string& directory) {
  constexpr std::size_t kMostLooks = 1000, kMostNotes = 5;
  std::unordered_set<std::string> looked;
  flow::Words notes;
  for (const auto& step : flow.steps)
    for (const auto& path : file_words(step.run)) {
      if (looked.size() == kMostLooks || notes.size() == kMostNotes) return notes;
      if (may_be_input(step, path) ||
          std::ranges::find(step.out, path, &flow::Output::path) != step.out.end() ||
          !looked.insert(path).second)
        continue;
      const auto status = env.status(directory + "/" + path);
      if (!status || status->kind != os::FileStatus::Kind::file) continue;
      const std::string name = path.substr(path.rfind('/') + 1);
      notes.push_back(fmt::format(
          "{}:{}: steps.{}.run: {} is in the file's folder, but not in the task's directory, which "
          "only has its inputs; if the task needs it: in: {{{}: {}}}",
          step.file, step.run_line, step.name, path, name.substr(0, name.find('.')), path));
    }
  return notes;
}

}  // namespace berth::run
