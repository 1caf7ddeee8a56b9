// How a command declares what it may be given. options.cc alone includes the library behind it,
// CLI11.
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

/// An option or a positional that has been declared. Each member narrows what it takes; what does
/// not fit is a usage error that names the option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required();
  /// --help calls the value this, in place of TEXT or INT.
  Option named(const std::string& word);
  Option one_of(const std::vector<std::string>& words);
  Option between(int least, int most);
  /// It may be given this many values.
  Option count(int least, int most);
  /// Several values may stand in one word, with this letter between them.
  Option split_at(char letter);
  /// A list takes one value each time that it is given, and not the words behind it, too.
  Option one_at_a_time();
  /// It may not be given together with `other`, which has been declared before.
  Option excludes(const std::string& other);

 private:
  CLI::Option* option_;
};

/// What a command may be given. `to` receives the value when the command line is read, stays as it
/// is where the option is not given, and has to live until then. `names` is "--name", "-n,--name"
/// or, for a positional, "NAME".
class Options {
 public:
  explicit Options(CLI::App& command) : command_(&command) {}
  Option flag(const std::string& names, bool& to, const std::string& help);
  /// A flag that may have a value: --name or --name=VALUE. `to` receives "true" for the first.
  Option flag_with_value(const std::string& name, const std::string& value, std::string& to,
                         const std::string& help);
  Option value(const std::string& names, std::string& to, const std::string& help);
  Option value(const std::string& names, std::optional<std::string>& to, const std::string& help);
  Option value(const std::string& names, int& to, const std::string& help);
  Option list(const std::string& names, std::vector<std::string>& to, const std::string& help);
  Option list(const std::string& names, std::vector<int>& to, const std::string& help);

  /// Every command accepts --json; `to` tells one that has a machine-readable form.
  void json(bool& to) { json_ = &to; }
  bool has_json() const { return json_ != nullptr; }
  /// The words behind "--" are appended to `to`. A command that does not call this refuses them.
  void after_dashes(std::vector<std::string>& to) { after_dashes_ = &to; }
  /// `to` receives all words of the command line, for a command that passes them to another
  /// program.
  void whole_line(std::vector<std::string>& to) { whole_line_ = &to; }

  /// What --help ends with: one example, or a text of several lines.
  void example(const std::string& line) { footer("Example:\n  " + line); }
  void footer(const std::string& text);
  /// berth --help does not list the command.
  void hide();

 private:
  friend class CommandLine;
  CLI::App* command_;
  bool* json_ = nullptr;
  std::vector<std::string>* after_dashes_ = nullptr;
  std::vector<std::string>* whole_line_ = nullptr;
};

/// Runs a command whose options have been read. It returns the exit code, or an Error that is
/// printed on standard error.
using Action = std::function<Result<int>(os::Env&)>;

struct Command {
  std::string name;     // "": berth without a command
  std::string summary;  // its line in berth --help
  std::function<Action(Options&)> declare;
  bool reads_its_own_words = false;  // what stands behind its name is not looked at
};

/// A command whose options are the members of `Own`, which Own::add_to(Options&) declares.
template <typename Own>
Command command(std::string name, std::string summary, Result<int> (*run)(os::Env&, const Own&)) {
  return {std::move(name), std::move(summary), [run](Options& options) -> Action {
            auto own = std::make_shared<Own>();
            own->add_to(options);
            return [own, run](os::Env& env) { return run(env, *own); };
          }};
}

/// What is to be printed instead of running anything: help, or the version.
struct Printout {
  std::string text;
};

/// Reads the command line for the command that it names. One of the commands has no name. usage:
/// what is wrong, and where help is.
Result<std::variant<Action, Printout>> read_command_line(std::span<const Command> commands,
                                                         int count, const char* const* values);

}  // namespace berth::cli
