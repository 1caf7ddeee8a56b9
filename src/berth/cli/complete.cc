// berth completion, berth complete, berth manual: what shells and man pages are made of.
#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/command_help.h"
#include "berth/cli/complete.h"
#include "berth/cli/completion.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/run_record.h"
#include "berth/error.h"
#include "berth/remote/clusters.h"
#include "berth/run/context.h"
#include "berth/topology/topology.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostCandidates = 1000;

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

/// The runs of the store, the latest first; or, behind "RUN/", the tasks of that run.
Result<std::vector<Candidate>> runs_or_tasks(os::Env& env, Subject subject,
                                             std::string_view so_far) {
  BERTH_ASSIGN(const std::string state, run::state_directory(env));
  if (!env.status(state)) return std::vector<Candidate>();  // nothing is made on the way
  BERTH_ASSIGN(const run::Context context, run::open_context(env));
  std::vector<Candidate> found;
  if (const auto slash = so_far.find('/'); subject == Subject::tasks && slash != so_far.npos) {
    const std::string run(so_far.substr(0, slash));
    BERTH_ASSIGN(const auto record, context.store->find_run(run));
    BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
    for (const auto& task : tasks)
      if (found.size() < kMostCandidates && (run + "/" + task.label).starts_with(so_far))
        found.push_back({run + "/" + task.label, std::string(store::name(task.state))});
    return found;
  }
  if (so_far.starts_with('@')) found.push_back({std::string(kLastRun), "the latest run"});
  BERTH_ASSIGN(const auto records, context.store->runs());
  for (auto record = records.rbegin(); record != records.rend(); ++record)
    if (found.size() < kMostCandidates && record->name.starts_with(so_far))
      found.push_back({record->name, engine::counts_text(record->counts)});
  return found;
}

Result<std::vector<Candidate>> clusters(os::Env& env) {
  BERTH_ASSIGN(const auto entries, remote::read_clusters(env));
  std::vector<Candidate> found;
  for (const auto& entry : entries) found.push_back({entry.name, entry.kind});
  return found;
}

/// What cannot be read has no candidates: whoever presses the key wants no message.
std::vector<Candidate> look_up(os::Env& env, Subject subject, std::string_view so_far) {
  if (subject == Subject::runs || subject == Subject::tasks)
    return runs_or_tasks(env, subject, so_far).value_or(std::vector<Candidate>());
  if (subject == Subject::clusters) return clusters(env).value_or(std::vector<Candidate>());
  std::vector<Candidate> found;
  if (subject == Subject::topologies)
    for (auto& name : topology::catalogue()) found.push_back({std::move(name)});
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
