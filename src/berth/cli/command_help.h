// What every command says of itself, as data: the man pages and the completions of shells are made
// of it, so that they cannot differ from --help.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "berth/cli/options.h"

namespace berth::cli {

/// An option or a positional.
struct OptionHelp {
  std::string names;  ///< "-f,--follow", or "RUN" of a positional.
  std::string value;  ///< What its value is called: "FILE", "TEXT"; "" of a flag.
  std::string help;
  std::vector<std::string> words = {};  ///< The only values that it takes; empty: any.
  bool positional = false, required = false;
  bool repeats = false;  ///< It takes several values.
};

struct CommandHelp {
  std::string name;     ///< "" of berth itself.
  std::string summary;  ///< A line.
  std::string usage;    ///< "berth logs [OPTIONS] RUN[/TASK]"
  std::vector<OptionHelp> options;
  std::string footer;  ///< Examples and notes, in lines.
};

/// All commands that berth --help lists, and berth itself first, in their order.
std::vector<CommandHelp> describe(std::span<const Command> commands);

/// The commands in JSON: {"version":1,"berth":"0.1.0","commands":[{"name","summary","usage",
/// "options":[{"names","value","help","words","positional","required","repeats"}],"footer"}]}.
std::string to_json(const std::vector<CommandHelp>& commands);

}  // namespace berth::cli
