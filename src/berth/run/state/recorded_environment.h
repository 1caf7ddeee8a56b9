// The recorded environment of a run: the variables that its tasks had from the runner at the
// submission, kept in the run's directory so that a resume can compare them with the present ones.
//
// Variables of a terminal or log-in session (TERM, SSH_*, PWD, …) are neither recorded nor
// compared. The value of a variable that looks like a secret (TOKEN, KEY, PASSWORD, …) is kept only
// as a digest, and no message shows it.
//
// Threads: one. Failure: as the functions say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/exec/environment.h"
#include "berth/run/state/context.h"

namespace berth::run {

/// The environment of tasks on this machine: the recorded one where the context has it.
exec::Environment task_environment(const Context& context);

/// Returns true for variables that differ between sessions of one user.
bool belongs_to_session(std::string_view name);
/// Returns true where the name, or a password within a URL, shows that the value must not be kept.
bool is_secret(std::string_view name, std::string_view value);

Status record_environment(const Context& context, const std::string& run_name);

/// A variable whose value at the submission differs from the present one.
struct ChangedVariable {
  std::string name;
  std::optional<std::string> before, now;  ///< nullopt: it is not set.
  bool secret = false;                     ///< `before` and `now` are empty then.
};
/// Returns the differences, by name. It is empty where nothing was recorded, and for a run on other
/// machines, whose tasks do not get the environment of this one.
Result<std::vector<ChangedVariable>> changed_variables(const Context& context,
                                                       const std::string& run_name);
/// Returns the lines for a person: each variable with both values.
std::string to_text(const std::vector<ChangedVariable>& changed);

/// Makes tasks of the run get the recorded environment; secrets and variables of the session keep
/// their present values. Failure: not_found, where nothing was recorded.
Status use_recorded_environment(Context& context, const std::string& run_name);

}  // namespace berth::run
