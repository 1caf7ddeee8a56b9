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

constexpr const char* kSummary = "Berth finds every job its place on your accelerators.";
constexpr const char* kFooter =
    "Start with:  berth run examples/digits/sweep.yaml\nAlone, berth shows what runs.";

/// What berth takes without a command.
void add_common(CLI::App& app, bool& json) {
  app.set_version_flag("--version", std::string(version()));
  app.add_flag("--json", json, "machine-readable, in a stable shape");
}

/// CLI11 says "The following argument was not expected: runns"; a person is better helped by a
/// name.
std::string advise(std::span<const Command> commands, const std::string& message, int count,
                   const char* const* values) {
  if (count <= 1 || values[1][0] == '-') return message + "; see berth --help";
  const std::string first = values[1];
  std::vector<std::string_view> names;
  for (const auto& command : commands)
    if (!command.name.empty()) names.push_back(command.name);
  if (std::ranges::find(names, first) != names.end())
    return fmt::format("{}; see berth {} --help", message, first);
  const auto meant = nearest(first, names);
  return fmt::format("unknown command '{}'{}; see berth --help", clip(first),
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
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
  option_->check(CLI::IsMember(words));
  return *this;
}

Option Option::between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::count(int least, int most) {
  option_->expected(least, most);
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

Option Options::flag(const std::string& names, bool& to, const std::string& help) {
  return Option(command_->add_flag(names, to, help));
}

Option Options::flag_with_value(const std::string& name, const std::string& value, std::string& to,
                                const std::string& help) {
  return Option(command_->add_flag(name, to, help)->option_text("[=" + value + "]"));
}

Option Options::value(const std::string& names, std::string& to, const std::string& help) {
  return Option(command_->add_option(names, to, help));
}

Option Options::value(const std::string& names, std::optional<std::string>& to,
                      const std::string& help) {
  return Option(command_->add_option(names, to, help));
}

Option Options::value(const std::string& names, int& to, const std::string& help) {
  return Option(command_->add_option(names, to, help));
}

Option Options::list(const std::string& names, std::vector<std::string>& to,
                     const std::string& help) {
  return Option(command_->add_option(names, to, help));
}

Option Options::list(const std::string& names, std::vector<int>& to, const std::string& help) {
  return Option(command_->add_option(names, to, help));
}

void Options::footer(const std::string& text) {
  command_->footer(text);
}

void Options::hide() {
  command_->group("");
}

/// One reading of a command line.
class CommandLine {
 public:
  CommandLine(std::span<const Command> commands, int count, const char* const* values)
      : commands_(commands), all_(values, values + count) {
    const auto dashes = std::find(all_.begin() + std::min(count, 1), all_.end(), "--");
    ours_ = static_cast<int>(dashes - all_.begin());
    if (dashes != all_.end()) after_dashes_.assign(dashes + 1, all_.end());
    add_common(app_, json_);
    app_.require_subcommand(0, 1);
    app_.fallthrough();
    app_.footer(kFooter);
  }

  Result<std::variant<Action, Printout>> read(const char* const* values) {
    for (const auto& command : commands_) {
      CLI::App& own =
          command.name.empty() ? app_ : *app_.add_subcommand(command.name, command.summary);
      Options options(own);
      Action action = command.declare(options);
      if (command.reads_its_own_words && all_.size() > 1 && all_[1] == command.name)
        return take(options, std::move(action));
      declared_.push_back({&own, options, std::move(action)});
    }
    try {
      app_.parse(ours_, values);
    } catch (const CLI::CallForHelp&) {
      const auto chosen = app_.get_subcommands();
      return Printout{chosen.empty() ? app_.help() : chosen.front()->help("berth")};
    } catch (const CLI::CallForVersion&) {
      return Printout{fmt::format("berth {}\n", version())};
    } catch (const CLI::ParseError& error) {
      return fail(ErrorKind::usage, "{}", advise(commands_, error.what(), ours_, values));
    }
    const auto chosen = app_.get_subcommands();
    const CLI::App* named = chosen.empty() ? &app_ : chosen.front();
    const auto found = std::ranges::find(declared_, named, &Declared::app);
    if (!after_dashes_.empty() && found->options.after_dashes_ == nullptr)
      return fail(ErrorKind::usage, "'--' and a command belong to berth run");
    return take(found->options, std::move(found->action));
  }

 private:
  struct Declared {
    const CLI::App* app;
    Options options;
    Action action;
  };

  /// Hands over what concerns the line as a whole.
  Action take(const Options& options, Action action) {
    if (options.json_ != nullptr) *options.json_ = json_;
    if (options.whole_line_ != nullptr) *options.whole_line_ = all_;
    if (options.after_dashes_ != nullptr)
      std::ranges::move(after_dashes_, std::back_inserter(*options.after_dashes_));
    return action;
  }

  std::span<const Command> commands_;
  std::vector<std::string> all_;
  int ours_ = 0;  // how many of them stand before "--": the rest is not for us to read
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
  // "TEXT:{on,off}": what its value is called, and behind a colon which ones it takes.
  const std::string type = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  const auto colon = type.find(':');
  help.value =
      type.substr(0, colon == type.find(":{") || colon == type.find(":INT in") ? colon : type.npos);
  if (const auto brace = type.find(":{"); brace != type.npos && type.ends_with('}'))
    for (const auto word :
         split(std::string_view(type).substr(brace + 2, type.size() - brace - 3), ','))
      help.words.emplace_back(word);
  help.help = option.get_description();
  help.required = option.get_required();
  help.repeats = option.get_items_expected_max() > 1;
  return help;
}

}  // namespace

std::vector<CommandHelp> describe(std::span<const Command> commands) {
  std::vector<CommandHelp> described;
  for (const auto& command : commands) {
    const bool whole = command.name.empty();
    CLI::App app(whole ? kSummary : command.summary, whole ? "berth" : command.name);
    Options options(app);
    (void)command.declare(options);
    if (app.get_group().empty()) continue;  // hidden
    bool json = false;
    if (whole) {
      app.footer(kFooter);
      add_common(app, json);
    } else if (options.has_json()) {
      app.add_flag("--json", json, "machine-readable, in a stable shape");
    }
    const std::string help = app.help(whole ? "" : "berth");
    constexpr std::string_view kUsage = "Usage: ";
    const auto usage = help.find(kUsage) + kUsage.size();
    CommandHelp& each = described.emplace_back();
    each.name = command.name;
    each.summary = app.get_description();
    each.usage = help.substr(usage, help.find('\n', usage) - usage) + (whole ? " [COMMAND]" : "");
    for (const CLI::Option* option : std::as_const(app).get_options())
      each.options.push_back(help_of(*option));
    each.footer = app.get_footer();
  }
  return described;
}

Result<std::variant<Action, Printout>> read_command_line(std::span<const Command> commands,
                                                         int count, const char* const* values) {
  return CommandLine(commands, count, values).read(values);
}

}  // namespace berth::cli
