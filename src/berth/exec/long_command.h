// A process cannot get an argument or a variable of more than 128 KiB (on machines with pages of
// 4 KiB), nor more than some MiB of all of them. These functions make a start fit where that
// changes nothing for the task: the text of a shell goes through a file, and variables that only
// repeat what a file has are left out.
//
// Ownership: the caller removes the file. Threads: any. Failure: as each function says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/exec/messages.h"
#include "berth/os/spawn.h"

namespace berth::exec {

/// The index of the word that is the script of a shell or an interpreter (`bash -c TEXT`, `python3
/// -c TEXT`) and has `most` bytes or more; nullopt: there is none.
std::optional<std::size_t> long_script(const std::vector<std::string>& line, std::size_t most);

/// Changes the line so that the script at `index` is read from `file`, which has it. The script of
/// a shell keeps its $0 and its arguments.
void read_script_from(std::vector<std::string>& line, std::size_t index, const std::string& file);

/// Removes the variables of Berth (BERTH_PARAMS, BERTH_PARAM_X, BERTH_IN_X, BERTH_OUT_X) that have
/// `most_of_one` bytes or more, and then the longest of them until `line` and `environment` have
/// less than `most_of_all`. Returns their names.
std::vector<std::string> leave_out_long(const std::vector<std::string>& line,
                                        Environment& environment, std::size_t most_of_one,
                                        std::size_t most_of_all);

/// What fit_limits() did to a start.
struct Fitted {
  std::string file = {};                   ///< Has the script; empty: there is none.
  std::vector<std::string> left_out = {};  ///< Names of variables.
};

/// Makes the start fit the limits of this machine where that changes nothing for the task. The
/// script goes to the task's directory where only that is shown to it (it is isolated), otherwise
/// to `directory`. Failure: as Env::replace_file().
Result<Fitted> fit_limits(os::Env& env, const std::string& directory, const Launch& launch,
                          os::SpawnSpec& spec);
/// Tells people about the variables that were left out; "" when there are none.
std::string describe(const Fitted& fitted);

}  // namespace berth::exec
