#include "berth/cli/completion.h"

#include <algorithm>
#include <array>
#include <utility>

#include "berth/base/text.h"

namespace berth::cli {
namespace {

using Words = std::span<const std::string>;

bool has_name(const OptionHelp& option, std::string_view name) {
  const auto names = split(option.names, ',');
  return std::ranges::find(names, name) != names.end();
}

const OptionHelp* find_option(const CommandHelp& command, std::string_view name) {
  const auto found = std::ranges::find_if(
      command.options, [&](const auto& each) { return !each.positional && has_name(each, name); });
  return found == command.options.end() ? nullptr : &*found;
}

/// The option whose value the word behind `word` is; nullptr where it is none.
const OptionHelp* awaits_value(const CommandHelp& command, std::string_view word) {
  if (!word.starts_with('-') || word.find('=') != word.npos) return nullptr;
  const auto* option = find_option(command, word);
  return option != nullptr && !option->value.empty() ? option : nullptr;
}

class Completer {
 public:
  Completer(std::string_view so_far, const Lookup& look_up) : so_far_(so_far), look_up_(look_up) {}

  void add(std::string word, std::string help) {
    if (word.starts_with(so_far_)) found_.all.push_back({std::move(word), std::move(help)});
  }
  /// Values of this option, each behind `before`.
  void add_values(const OptionHelp& option, const std::string& before = "") {
    for (const auto& word : option.words) add(before + word, "");
    if (!option.words.empty()) return;
    const Subject subject = subject_of(option.positional ? option.names : option.value);
    if (subject == Subject::files || subject == Subject::commands) found_.by_shell = subject;
    if (subject == Subject::topologies) found_.by_shell = Subject::files;
    const auto so_far = std::string_view(so_far_).substr(std::min(before.size(), so_far_.size()));
    if (subject != Subject::nothing)
      for (auto& each : look_up_(subject, so_far)) add(before + each.word, std::move(each.help));
    if (option.names == "FILE|RUN") found_.by_shell = Subject::files;
  }
  void add_options(const CommandHelp& command) {
    for (const auto& option : command.options)
      if (!option.positional) add(std::string(split(option.names, ',').back()), option.help);
  }
  void leave_to_shell(Subject subject) { found_.by_shell = subject; }
  Candidates take() { return std::move(found_); }

 private:
  std::string so_far_;
  const Lookup& look_up_;
  Candidates found_;
};

/// The positional at this position; nullptr where there is none.
const OptionHelp* positional_at(const CommandHelp& command, std::size_t at) {
  for (const auto& option : command.options) {
    if (!option.positional) continue;
    if (at == 0 || option.repeats) return &option;
    --at;
  }
  return nullptr;
}

Candidates complete_arguments(const CommandHelp& command, Words words, const Lookup& look_up) {
  Completer completer(words.back(), look_up);
  const OptionHelp* awaited = nullptr;
  std::size_t positionals = 0;
  for (const auto& word : words.first(words.size() - 1)) {
    const auto* of = std::exchange(awaited, nullptr);
    if (of != nullptr) continue;
    awaited = awaits_value(command, word);
    positionals += !word.starts_with('-');
  }
  const std::string& last = words.back();
  const auto equals = last.find('=');
  if (awaited != nullptr) {
    completer.add_values(*awaited);
  } else if (last.starts_with("--") && equals != last.npos) {
    if (const auto* option = find_option(command, last.substr(0, equals)))
      completer.add_values(*option, last.substr(0, equals + 1));
  } else if (last.starts_with('-')) {
    completer.add_options(command);
  } else if (const auto* positional = positional_at(command, positionals)) {
    completer.add_values(*positional);
  }
  return completer.take();
}

/// The words after the command `name`, which may begin with an action: cluster add.
Candidates complete_command_words(std::span<const CommandHelp> commands, const std::string& name,
                                  Words words, const Lookup& look_up) {
  const auto command = std::ranges::find_if(commands, [&](const CommandHelp& each) {
    return each.name == name || std::ranges::find(each.aliases, name) != each.aliases.end();
  });
  if (command == commands.end() || command->name.empty()) return {};
  const std::string prefix = command->name + " ";
  const auto is_action = [&](const CommandHelp& each) { return each.name.starts_with(prefix); };
  const bool has_actions = std::ranges::any_of(commands, is_action);
  if (!has_actions && name != "help") return complete_arguments(*command, words, look_up);
  if (words.size() > 1)
    return complete_command_words(commands, has_actions ? prefix + words.front() : words.front(),
                                  words.subspan(1), look_up);
  Completer completer(words.back(), look_up);
  if (words.back().starts_with('-')) completer.add_options(*command);
  for (const auto& each : commands) {
    if (has_actions && is_action(each))
      completer.add(each.name.substr(prefix.size()), each.summary);
    if (!has_actions && !each.name.empty() && each.name.find(' ') == each.name.npos)
      completer.add(each.name, each.summary);
  }
  return completer.take();
}

}  // namespace

Subject subject_of(std::string_view value) {
  constexpr std::array<std::pair<std::string_view, Subject>, 13> kSubjects{{
      {"RUN", Subject::runs},
      {"FILE|RUN", Subject::runs},
      {"RUN/TASK", Subject::tasks},
      {"RUN[/TASK]", Subject::tasks},
      {"TRIAL", Subject::tasks},
      {"CLUSTER", Subject::clusters},
      {"TOPOLOGY", Subject::topologies},
      {"FILE", Subject::files},
      {"PATH", Subject::files},
      {"TABLE", Subject::files},
      {"DIR", Subject::files},
      {"MODEL.json", Subject::files},
      {"COMMAND", Subject::commands},
  }};
  const auto* const found =
      std::ranges::find(kSubjects, value, &std::pair<std::string_view, Subject>::first);
  return found == kSubjects.end() ? Subject::nothing : found->second;
}

Candidates complete(std::span<const CommandHelp> commands, Words words, const Lookup& look_up) {
  if (words.empty()) return {};
  const auto dashes = std::ranges::find(words.first(words.size() - 1), "--");
  if (dashes != words.end() - 1) {  // somebody else's command
    Completer completer("", look_up);
    completer.leave_to_shell(dashes == words.end() - 2 ? Subject::commands : Subject::files);
    return completer.take();
  }
  const auto before = words.first(words.size() - 1);
  const auto named =
      std::ranges::find_if(before, [](const auto& word) { return !word.starts_with('-'); });
  if (named == before.end()) {
    Completer completer(words.back(), look_up);
    if (words.back().starts_with('-')) {
      completer.add_options(commands.front());
    } else {
      for (const auto& command : commands)
        if (!command.name.empty() && command.name.find(' ') == command.name.npos)
          completer.add(command.name, command.summary);
    }
    return completer.take();
  }
  const auto after = static_cast<std::size_t>(named - before.begin()) + 1;
  return complete_command_words(commands, *named, words.subspan(after), look_up);
}

}  // namespace berth::cli
