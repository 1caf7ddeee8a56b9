// What may stand next on a command line. The shells' scripts (completion/berth.*) ask for it with
// each press of the key, so the rules are here alone.
//
// Pure but for the function that is handed in.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/cli/command_help.h"

namespace berth::cli {

/// What a value is of, by the word that --help calls it.
enum class Subject : std::uint8_t { nothing, files, commands, runs, tasks, clusters, topologies };
Subject subject_of(std::string_view value);

struct Candidate {
  std::string word;  ///< The whole word, not what is left of it.
  std::string help = {};
};
/// Candidates, and whether the shell's own completion of files or of commands belongs to them.
struct Candidates {
  std::vector<Candidate> all;
  Subject by_shell = Subject::nothing;  ///< files, commands or nothing.
};

/// Finds runs, tasks, clusters or topologies for the word so far.
using Lookup = std::function<std::vector<Candidate>(Subject, std::string_view so_far)>;

/// What the last of `words` may become; the first is the word behind "berth".
Candidates complete(std::span<const CommandHelp> commands, std::span<const std::string> words,
                    const Lookup& look_up);

}  // namespace berth::cli
