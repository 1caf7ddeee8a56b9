// The help of commands as data. --help, man pages and shell completions are all made from it, so
// that they always agree.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "berth/cli/options.h"

namespace berth::cli {

struct OptionHelp {
  std::string names;  ///< "-f,--follow", or "RUN" for a positional.
  std::string value;  ///< The placeholder of its value, such as "FILE"; "" for a flag.
  std::string help;
  std::vector<std::string> words = {};  ///< The accepted values; empty: any value.
  bool positional = false, required = false;
  bool repeats = false;       ///< It takes several values.
  std::string group = {};     ///< Its heading in --help; "" for general options.
  std::string optional = {};  ///< An optional value, such as "[=N]".
};

struct CommandHelp {
  std::string name;     ///< "" for berth itself.
  std::string summary;  ///< One line.
  std::string usage;    ///< "berth logs [OPTIONS] RUN[/TASK]"; may have several lines.
  std::vector<OptionHelp> options;
  std::string footer = {};  ///< Notes and examples, in lines.
  std::string group = {};   ///< Its heading in berth --help.
  std::vector<std::string> aliases = {};
  bool hidden = false;
};

CommandHelp describe(const Command& command);
/// Describes all commands but the hidden ones; berth itself comes first.
std::vector<CommandHelp> describe(std::span<const Command> commands);

/// Returns the text of --help, wrapped to `width` columns. `all` are the described commands: berth
/// itself lists them by group, and a command with actions lists those.
std::string help_text(const CommandHelp& command, std::span<const CommandHelp> all, int width);

/// The commands in JSON:
/// {"version":1,"berth":"0.1.0","commands":[{"name","summary","usage","group",
/// "aliases","options":[{"names","value","help","words","positional","required","repeats","group"}],
/// "footer"}]}.
std::string to_json(const std::vector<CommandHelp>& commands);

}  // namespace berth::cli
