#include "berth/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <utility>

#include "berth/base/text.h"
#include "berth/cli/command_help.h"
#include "berth/error.h"

namespace berth::cli {
namespace {

constexpr const char* kSummary =
    "Run experiments, searches and flows on GPUs, and plan LLM inference fleets.";
constexpr const char* kFooter =
    "Start with:  berth run examples/digits/sweep.yaml\n"
    "Help:        berth help COMMAND\n"
    "Without a command, berth lists the runs that are active.";
constexpr const char* kHelpOfHelp = "Show this help";
constexpr const char* kHelpOfJson = "Print JSON in a stable format";

/// Declares the options of berth without a command.
void add_common(CLI::App& app, bool& json) {
  app.set_help_flag("-h,--help", kHelpOfHelp);
  app.set_version_flag("--version", std::string(version()), "Print the version");
  app.add_flag("--json", json, kHelpOfJson);
}

/// The candidate that `word` begins, where there is one alone, or the nearest one, where that is
/// near.
std::string meant(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kFewestLetters = 3;
  const auto begins = [&](const std::string& each) { return each.starts_with(word); };
  if (word.size() >= kFewestLetters && std::ranges::count_if(candidates, begins) == 1)
    return *std::ranges::find_if(candidates, begins);
  return std::string(nearest_of(word, candidates));
}

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const auto near = meant(word, candidates);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

/// An option as messages call it: its long name.
std::string long_name(const CLI::Option& option) {
  return option.get_positional() ? option.get_name(true)
                                 : std::string(split(option.get_name(false, true), ',').back());
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names{"--json"};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_positional()) names.push_back(long_name(*option));
  return names;
}

/// A check that accepts these words alone; its description, "{a,b}", is read by help_of().
CLI::Validator one_of_check(const std::vector<std::string>& words) {
  return {[words](std::string& text) -> std::string {
            if (std::ranges::find(words, text) != words.end()) return {};
            std::string list = words.front();
            for (std::size_t i = 1; i < words.size(); ++i)
              list += (i + 1 == words.size() ? " or " : ", ") + words[i];
            return fmt::format("expected {}, got '{}'{}", list, clip(text),
                               suggestion(text, words));
          },
          "{" + join(words, ",") + "}"};
}

CLI::Validator range_check(int lowest, int highest) {
  return {[lowest, highest](std::string& text) -> std::string {
            int number = 0;
            if (CLI::detail::lexical_cast(text, number) && number >= lowest && number <= highest)
              return {};
            return fmt::format("expected a whole number from {} to {}, got '{}'", lowest, highest,
                               clip(text));
          },
          ""};
}

}  // namespace

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::named(const std::string& word) {
  option_->type_name(word);
  return *this;
}

Option Option::one_of(const std::vector<std::string>& words) {
  option_->check(one_of_check(words));
  return *this;
}

Option Option::between(int lowest, int highest) {
  option_->check(range_check(lowest, highest));
  return *this;
}

Option Option::count(int fewest, int most) {
  option_->expected(fewest, most);
  return *this;
}

Option Option::split_at(char letter) {
  option_->delimiter(letter);
  return *this;
}

Option Option::one_at_a_time() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::excludes(const std::string& other) {
  option_->excludes(other);
  return *this;
}

Option Options::add(CLI::Option* option) {
  if (!group_.empty()) option->group(group_);
  return Option(option);
}

Option Options::flag(const std::string& names, bool& to, const std::string& help) {
  return add(command_->add_flag(names, to, help));
}

Option Options::flag_with_value(const std::string& name, const std::string& value, std::string& to,
                                const std::string& help) {
  return add(command_->add_flag(name, to, help)->option_text("[=" + value + "]"));
}

Option Options::value(const std::string& names, std::string& to, const std::string& help) {
  return add(command_->add_option(names, to, help)->type_name("TEXT"));
}

Option Options::value(const std::string& names, std::optional<std::string>& to,
                      const std::string& help) {
  return add(command_->add_option(names, to, help)->type_name("TEXT"));
}

Option Options::value(const std::string& names, int& to, const std::string& help) {
  return add(command_->add_option(names, to, help)->type_name("N"));
}

Option Options::list(const std::string& names, std::vector<std::string>& to,
                     const std::string& help) {
  return add(command_->add_option(names, to, help)->type_name("TEXT"));
}

Option Options::list(const std::string& names, std::vector<int>& to, const std::string& help) {
  return add(command_->add_option(names, to, help)->type_name("N"));
}

void Options::footer(const std::string& text) {
  command_->footer(text);
}

/// One reading of a command line.
class CommandLine {
 public:
  CommandLine(std::span<const Command> commands, int count, const char* const* values)
      : commands_(commands), all_(values, values + count) {
    replace_alias();
    // "help NAME" is "NAME --help"; "help --help" is about help itself.
    const auto is_help = [&](std::size_t i, std::string_view word) {
      return all_.size() > i && all_[i] == word;
    };
    const bool asks_for_help = is_help(1, "help") && !is_help(2, "--help") && !is_help(2, "-h");
    if (asks_for_help) all_.erase(all_.begin() + 1);
    auto dashes = std::find(all_.begin() + std::min(count, 1), all_.end(), "--");
    if (asks_for_help) dashes = all_.insert(dashes, "--help") + 1;
    ours_ = static_cast<std::size_t>(dashes - all_.begin());
    if (dashes != all_.end()) after_dashes_.assign(dashes + 1, all_.end());
    add_common(app_, json_);
    app_.require_subcommand(0, 1);
    app_.fallthrough();
  }

  Result<std::variant<Action, Printout>> read(int width) {
    for (const auto& command : commands_) {
      CLI::App& own = app_of(command);
      Options options(own);
      Action action = command.declare(options);
      if (command.reads_its_own_words && all_.size() > 1 && all_[1] == command.name)
        return take(options, std::move(action));
      declared_.push_back({&command, &own, options, std::move(action)});
    }
    try {
      std::vector<std::string> ours(all_.begin() + (all_.empty() ? 0 : 1),
                                    all_.begin() + at(ours_));
      std::ranges::reverse(ours);
      app_.parse(std::move(ours));
    } catch (const CLI::CallForHelp&) {
      // "berth help runns": a word that is not a command, which is not read before --help is.
      if (chosen().command->name.empty() && !app_.remaining(true).empty())
        return fail(ErrorKind::usage, "{}; see {}", unexpected_word(), help_command());
      return Printout{help_text(describe(*chosen().command), describe(commands_), width)};
    } catch (const CLI::CallForVersion&) {
      return Printout{fmt::format("berth {}\n", version())};
    } catch (const CLI::ParseError& error) {
      return fail(ErrorKind::usage, "{}", advice(error));
    }
    const Declared& found = chosen();
    if (found.options.has_actions_)
      return fail(ErrorKind::usage, "{} needs an action: {}; see {}", found.command->name,
                  join(actions_of(found.command->name), ", "), help_command());
    if (!after_dashes_.empty() && found.options.after_dashes_ == nullptr)
      return fail(ErrorKind::usage, "'--' and a command belong to berth run");
    if (json_ && found.options.json_ == nullptr && !found.options.always_json_)
      return fail(ErrorKind::usage, "{} has no --json; see {}", found.command->name,
                  help_command());
    return take(found.options, found.action);
  }

 private:
  struct Declared {
    const Command* command;
    const CLI::App* app;
    Options options;
    Action action;
  };

  static std::ptrdiff_t at(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

  /// Puts the command in the place of another name for it, such as ls.
  void replace_alias() {
    const auto is_word = [](const std::string& word) { return !word.starts_with('-'); };
    const auto word = std::find_if(all_.begin() + (all_.empty() ? 0 : 1), all_.end(), is_word);
    if (word == all_.end()) return;
    const auto known = std::ranges::find_if(commands_, [&](const Command& command) {
      return std::ranges::find(command.aliases, *word) != command.aliases.end();
    });
    if (known == commands_.end()) return;
    if (known->name.empty())
      all_.erase(word);
    else
      *word = known->name;
  }

  /// The parser of a command: "cluster add" is a part of "cluster", which is declared before.
  CLI::App& app_of(const Command& command) {
    if (command.name.empty()) return app_;
    const auto blank = command.name.find(' ');
    if (blank == std::string::npos) return *app_.add_subcommand(command.name);
    CLI::App& parent = *app_.get_subcommand(command.name.substr(0, blank));
    parent.require_subcommand(0, 1);
    return *parent.add_subcommand(command.name.substr(blank + 1));
  }

  /// The command that the line names, or berth itself.
  const Declared& chosen() const {
    const CLI::App* named = &app_;
    for (auto next = named->get_subcommands(); !next.empty(); next = named->get_subcommands())
      named = next.front();
    return *std::ranges::find(declared_, named, &Declared::app);
  }

  std::string help_command() const {
    const std::string& name = chosen().command->name;
    return name.empty() ? "berth --help" : fmt::format("berth {} --help", name);
  }

  /// What is wrong with a line that CLI11 refused, in words that help, and where help is.
  std::string advice(const CLI::ParseError& error) const {
    std::string message = error.what();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
      message = unexpected_word();
    else if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr)
      message = excluded(message);
    else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
      message = miscounted(message);
    return fmt::format("{}; see {}", message, help_command());
  }

  /// A word that the command does not take.
  std::string unexpected_word() const {
    const auto words = app_.remaining(true);
    const std::string word = words.empty() ? "" : words.front();
    const Declared& command = chosen();
    if (word.size() > 1 && word.starts_with('-')) {
      const std::string name = word.substr(0, word.find('='));
      return fmt::format("unknown option '{}'{}", clip(name),
                         suggestion(name, option_names(*command.app)));
    }
    const std::string& parent = command.command->name;
    const auto names = parent.empty() ? command_names() : actions_of(parent);
    if (names.empty()) return fmt::format("unexpected argument '{}'", clip(word));
    return fmt::format("unknown {} '{}'{}", parent.empty() ? "command" : "action", clip(word),
                       suggestion(word, names));
  }

  std::vector<std::string> command_names() const {
    std::vector<std::string> names;
    for (const auto& each : declared_) {
      const std::string& name = each.command->name;
      if (!name.empty() && name.find(' ') == name.npos && !each.options.hidden_)
        names.push_back(name);
      std::ranges::copy(each.command->aliases, std::back_inserter(names));
    }
    return names;
  }

  std::vector<std::string> actions_of(const std::string& command) const {
    std::vector<std::string> names;
    for (const auto& each : declared_)
      if (each.command->name.starts_with(command + " "))
        names.push_back(each.command->name.substr(command.size() + 1));
    return names;
  }

  /// "--graph excludes --csv"
  static std::string excluded(const std::string& message) {
    constexpr std::string_view kBetween = " excludes ";
    const auto middle = message.find(kBetween);
    if (middle == message.npos) return message;
    return fmt::format("{} and {} cannot be combined", message.substr(0, middle),
                       message.substr(middle + kBetween.size()));
  }

  /// "--cpu: 1 required AMOUNT missing", "--cpu: At Most 1 required but received 2"
  static std::string miscounted(const std::string& message) {
    const std::string name = message.substr(0, message.find(':'));
    if (message.find("At Most") != message.npos)
      return fmt::format("{} was given more than once", name);
    if (message.ends_with(" missing")) {
      const auto words = split(std::string_view(message).substr(0, message.rfind(" missing")), ' ');
      return fmt::format("{} needs a value: {}", name,
                         words.back().substr(0, words.back().find(":{")));
    }
    return message;
  }

  /// Hands over what concerns the line as a whole.
  Action take(const Options& options, Action action) {
    if (options.json_ != nullptr) *options.json_ = json_;
    if (options.whole_line_ != nullptr) *options.whole_line_ = all_;
    if (options.after_dashes_ != nullptr)
      std::ranges::move(after_dashes_, std::back_inserter(*options.after_dashes_));
    if (options.steps_.empty()) return action;
    return [steps = options.steps_, action = std::move(action)](os::Env& env) -> Result<int> {
      for (const auto& step : steps) BERTH_TRY(step(env));
      return action(env);
    };
  }

  std::span<const Command> commands_;
  std::vector<std::string> all_;
  std::size_t ours_ = 0;  // how many of them are before "--"; the others are not read here
  std::vector<std::string> after_dashes_;
  bool json_ = false;
  CLI::App app_{kSummary, "berth"};
  std::vector<Declared> declared_;
};

namespace {

OptionHelp help_of(const CLI::Option& option) {
  OptionHelp help;
  help.positional = option.get_positional();
  help.names = help.positional ? option.get_name(true) : option.get_name(false, true);
  help.optional = option.get_option_text();
  // "MODE:{on,off}": the placeholder of the value, and after a colon the accepted values.
  const std::string type = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  const auto brace = type.find(":{");
  help.value = type.substr(0, brace);
  if (brace != type.npos && type.ends_with('}'))
    for (const auto word :
         split(std::string_view(type).substr(brace + 2, type.size() - brace - 3), ','))
      help.words.emplace_back(word);
  help.help = option.get_description();
  help.required = option.get_required();
  help.repeats = option.get_items_expected_max() > 1;
  if (option.get_group() != "Options") help.group = option.get_group();
  return help;
}

/// "berth logs [OPTIONS] RUN[/TASK]"
std::string usage_of(const CommandHelp& command, bool has_actions) {
  std::string usage = command.name.empty() ? "berth" : "berth " + command.name;
  usage += " [OPTIONS]";
  if (command.name.empty()) return usage + " [COMMAND]";
  if (has_actions) return usage + " ACTION";
  for (const auto& option : command.options) {
    if (!option.positional) continue;
    const std::string name = option.names + (option.repeats ? "..." : "");
    usage += option.required ? " " + name : " [" + name + "]";
  }
  return usage;
}

}  // namespace

CommandHelp describe(const Command& command) {
  const bool whole = command.name.empty();
  CLI::App app;
  app.set_help_flag("-h,--help", kHelpOfHelp);
  Options options(app);
  (void)command.declare(options);
  CommandHelp help;
  help.name = command.name;
  help.summary = whole ? kSummary : command.summary;
  bool json = false;
  if (whole)
    add_common(app, json);
  else if (options.has_json())
    app.add_flag("--json", json, kHelpOfJson);
  for (const CLI::Option* option : std::as_const(app).get_options())
    help.options.push_back(help_of(*option));
  // CLI11 has --help first.
  const auto last = std::ranges::find(help.options, "-h,--help", &OptionHelp::names);
  if (last != help.options.end()) std::rotate(last, last + 1, help.options.end());
  help.usage = usage_of(help, options.has_actions_);
  if (!options.usage_.empty()) help.usage += "\nberth " + command.name + " " + options.usage_;
  help.footer = whole ? kFooter : app.get_footer();
  help.group = command.group;
  if (!whole) help.aliases = command.aliases;
  help.hidden = options.hidden_;
  return help;
}

std::vector<CommandHelp> describe(std::span<const Command> commands) {
  std::vector<CommandHelp> described;
  for (const auto& command : commands) {
    CommandHelp help = describe(command);
    if (!help.hidden) described.push_back(std::move(help));
  }
  return described;
}

Result<std::variant<Action, Printout>> read_command_line(std::span<const Command> commands,
                                                         int count, const char* const* values,
                                                         int width) {
  return CommandLine(commands, count, values).read(width);
}

}  // namespace berth::cli
