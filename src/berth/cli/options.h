// How commands declare their options. Only options.cc includes the parsing library, CLI11; help.h
// prints help.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "berth/base/result.h"
#include "berth/os/env.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace berth::cli {

struct Command;
struct CommandHelp;
/// A step before a command, such as looking up the latest run.
using Prepare = std::function<Status(os::Env&)>;

/// A declared option or positional. Each member narrows its values; any other value is a usage
/// error that names the option, the expected values and the given one.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required();
  /// Sets the placeholder of the value in --help; the default is TEXT, or N for a number.
  Option named(const std::string& word);
  /// Accepts only these values.
  Option one_of(const std::vector<std::string>& words);
  /// Accepts only numbers in this range, both ends included.
  Option between(int lowest, int highest);
  /// Sets how many values the option takes.
  Option count(int fewest, int most);
  /// Splits one word into several values at this letter.
  Option split_at(char letter);
  /// Makes a list take one value per occurrence, not all words that follow it.
  Option one_at_a_time();
  /// Refuses the combination with `other`, which must be declared already.
  Option excludes(const std::string& other);

 private:
  CLI::Option* option_;
};

/// The options and positionals of a command. `to` receives the value when the command line is read
/// and keeps its value where the option is absent; it must live until then. `names` is "--name",
/// "-n,--name" or, for a positional, "NAME".
class Options {
 public:
  explicit Options(CLI::App& command) : command_(&command) {}
  /// Lists all options declared from here on under this title in --help.
  void group(const std::string& title) { group_ = title; }
  Option flag(const std::string& names, bool& to, const std::string& help);
  /// A flag with an optional value: --name or --name=VALUE. `to` receives "true" for the first.
  Option flag_with_value(const std::string& name, const std::string& value, std::string& to,
                         const std::string& help);
  Option value(const std::string& names, std::string& to, const std::string& help);
  Option value(const std::string& names, std::optional<std::string>& to, const std::string& help);
  Option value(const std::string& names, int& to, const std::string& help);
  Option list(const std::string& names, std::vector<std::string>& to, const std::string& help);
  Option list(const std::string& names, std::vector<int>& to, const std::string& help);

  /// Declares --json. A command without it refuses --json.
  void json(bool& to) { json_ = &to; }
  /// Declares that the command prints JSON in any case, so that --json changes nothing.
  void always_json() { always_json_ = true; }
  bool has_json() const { return json_ != nullptr; }
  /// Appends the words after "--" to `to`. A command that does not call this refuses them.
  void after_dashes(std::vector<std::string>& to) { after_dashes_ = &to; }
  /// Copies the whole command line to `to`, for a command that starts another program with it.
  void whole_line(std::vector<std::string>& to) { whole_line_ = &to; }
  /// Adds a step that runs before the command, in the order of these calls.
  void prepare(Prepare step) { steps_.push_back(std::move(step)); }

  /// Declares that the command needs an action, which commands such as "cluster add" declare.
  void actions() { has_actions_ = true; }
  /// A second line of "Usage:", without "berth NAME".
  void usage(const std::string& line) { usage_ = line; }
  /// The end of --help: one example, or a text of several lines.
  void example(const std::string& line) { footer("Example:\n  " + line); }
  void footer(const std::string& text);
  /// Removes the command from berth --help, man pages and completions.
  void hide() { hidden_ = true; }

 private:
  friend class CommandLine;
  friend CommandHelp describe(const Command& command);
  Option add(CLI::Option* option);

  CLI::App* command_;
  std::string group_, usage_;
  bool* json_ = nullptr;
  bool always_json_ = false, hidden_ = false, has_actions_ = false;
  std::vector<std::string>* after_dashes_ = nullptr;
  std::vector<std::string>* whole_line_ = nullptr;
  std::vector<Prepare> steps_;
};

/// Runs a command whose options have been read. It returns the exit code, or an Error that is
/// printed on standard error.
using Action = std::function<Result<int>(os::Env&)>;

struct Command {
  std::string name;     // "" for berth without a command; "cluster add" for an action of cluster
  std::string summary;  // its line in berth --help
  std::function<Action(Options&)> declare;
  bool reads_its_own_words = false;       // the words after its name are passed on unread
  std::string group = {};                 // its heading in berth --help
  std::vector<std::string> aliases = {};  // other names

  Command&& alias(const std::string& other) && {
    aliases.push_back(other);
    return std::move(*this);
  }
  Command&& in(std::string_view heading) && {
    group = heading;
    return std::move(*this);
  }
};

/// Makes a command whose options are the members of `Own`; Own::add_to(Options&) declares them.
template <typename Own>
Command command(std::string name, std::string summary, Result<int> (*run)(os::Env&, const Own&)) {
  return {std::move(name), std::move(summary), [run](Options& options) -> Action {
            auto own = std::make_shared<Own>();
            own->add_to(options);
            return [own, run](os::Env& env) { return run(env, *own); };
          }};
}

/// Text to print instead of running a command: help or the version.
struct Printout {
  std::string text;
};

/// The width of --help where the terminal's is unknown.
inline constexpr int kDefaultWidth = 80;

/// Reads the command line of `count` words. Exactly one of the commands has no name. Help is
/// wrapped to `width` columns. usage: the message says what is wrong and where to find help.
Result<std::variant<Action, Printout>> read_command_line(std::span<const Command> commands,
                                                         int count, const char* const* values,
                                                         int width = kDefaultWidth);

}  // namespace berth::cli
