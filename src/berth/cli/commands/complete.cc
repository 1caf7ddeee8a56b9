// berth completion, berth complete, berth manual: what shells and man pages are made of.
#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/command_help.h"
#include "berth/cli/commands/complete.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/completion.h"
#include "berth/cli/print.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/names.h"
#include "berth/error.h"
#include "berth/topology/topology.h"

namespace berth::cli {
namespace {

struct CompletionOptions {
  std::string shell;

  void add_to(Options& options) {
    options.value("SHELL", shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
    options.footer(
        "Berth's packages install the scripts. Otherwise, add one of these lines:\n"
        "  source <(berth completion bash)    to ~/.bashrc\n"
        "  source <(berth completion zsh)     to ~/.zshrc, after compinit\n"
        "  berth completion fish | source     to ~/.config/fish/config.fish");
  }
};

constexpr std::string_view kBash =
#include "berth/cli/completion_bash.inc"
    ;
constexpr std::string_view kZsh =
#include "berth/cli/completion_zsh.inc"
    ;
constexpr std::string_view kFish =
#include "berth/cli/completion_fish.inc"
    ;

Result<int> print_script(os::Env&, const CompletionOptions& options) {
  print(options.shell == "bash" ? kBash : options.shell == "zsh" ? kZsh : kFish);
  return 0;
}

/// Sources that cannot be read have no candidates and no message.
std::vector<Candidate> look_up(os::Env& env, Subject subject, std::string_view so_far) {
  std::vector<Candidate> found;
  if (subject == Subject::topologies)
    for (auto& name : topology::catalogue()) found.push_back({std::move(name)});
  const bool is_task = subject == Subject::tasks && so_far.contains('/');
  const bool is_run = !is_task && (subject == Subject::runs || subject == Subject::tasks);
  const auto names = is_task                        ? engine::tasks_named(env, so_far)
                     : is_run                       ? engine::runs_named(env, so_far)
                     : subject == Subject::clusters ? engine::cluster_names(env)
                                                    : std::vector<engine::NameFound>();
  if (names && is_run && so_far.starts_with('@'))
    found.push_back({std::string(engine::kLastRun), "the latest run"});
  for (const auto& [name, description] : names.value_or(std::vector<engine::NameFound>()))
    found.push_back({name, description});
  return found;
}

}  // namespace

Command completion_command() {
  return command("completion", "Print the completion script for a shell", print_script);
}

Command help_command() {
  // The parser turns "help NAME" into "NAME --help".
  return {"help", "Show the help of a command", [](Options& options) -> Action {
            auto words = std::make_shared<std::vector<std::string>>();
            options.list("COMMAND", *words, "Command, such as run or cluster add");
            options.example("berth help cluster add");
            return [words](os::Env&) -> Result<int> { return 0; };
          }};
}

Command complete_command(const std::vector<Command>& commands) {
  return {"complete", "List completions of the last word, for the shell scripts",
          [commands](Options& options) -> Action {
            options.hide();
            auto words = std::make_shared<std::vector<std::string>>();
            options.after_dashes(*words);
            return [commands, words](os::Env& env) -> Result<int> {
              const auto described = describe(commands);
              const auto found =
                  complete(described, *words, [&](Subject subject, std::string_view so_far) {
                    return look_up(env, subject, so_far);
                  });
              std::string text;
              for (const auto& [word, help] : found.all)
                text += help.empty() ? word + "\n" : fmt::format("{}\t{}\n", word, help);
              if (found.by_shell == Subject::files) text += ":files\n";
              if (found.by_shell == Subject::commands) text += ":commands\n";
              print(text);
              return 0;
            };
          }};
}

Command manual_command(const std::vector<Command>& commands) {
  return {"manual", "Print all commands and options as JSON, for man pages",
          [commands](Options& options) -> Action {
            options.hide();
            options.always_json();
            return [commands](os::Env&) -> Result<int> {
              print(to_json(describe(commands)));
              return 0;
            };
          }};
}

std::string to_json(const std::vector<CommandHelp>& commands) {
  JsonWriter json;
  json.object().add("version", 1).add("berth", version()).key("commands").array();
  for (const auto& command : commands) {
    json.object()
        .add("name", command.name)
        .add("summary", command.summary)
        .add("usage", command.usage)
        .add("group", command.group)
        .key("aliases")
        .list(command.aliases)
        .key("options")
        .array();
    for (const auto& option : command.options)
      json.object()
          .add("names", option.names)
          .add("value", option.value)
          .add("optional", option.optional)
          .add("group", option.group)
          .add("help", option.help)
          .key("words")
          .list(option.words)
          .add("positional", option.positional)
          .add("required", option.required)
          .add("repeats", option.repeats)
          .end();
    json.end().add("footer", command.footer).end();
  }
  return json.end().end().take() + "\n";
}

}  // namespace berth::cli
