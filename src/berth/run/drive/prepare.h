// These functions check a command before anything is recorded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/exec/command.h"
#include "berth/experiment/program.h"
#include "berth/os/env.h"
#include "berth/run/state/context.h"

namespace berth::run {

/// One command as the program of a run, which takes one core and is called after the command.
experiment::Program program_of_command(const std::vector<std::string>& words);

/// The program that the command starts, where that can be told without a shell.
std::optional<std::string> first_program(const exec::Command& command);

/// Checks that the program exists (in PATH, or from `directory` on) and is executable. Failure:
/// not_found, invalid.
Status check_executable(os::Env& env, const std::string& program, const std::string& directory);
/// Returns the path at which check_executable() finds the program.
Result<std::string> find_executable(os::Env& env, const std::string& program,
                                    const std::string& directory);

/// Checks that the shell exists which the command needs, if any. Failure: not_found, with advice.
Status check_shell(os::Env& env, const exec::Command& command, const std::string& directory);

/// Checks that the program's standard input can be read. `file` is named in errors. Failure:
/// not_found, invalid.
Status check_input_of(os::Env& env, const experiment::Program& program,
                      const std::string& directory, const std::string& file);

/// Checks, as far as reading tells, that this machine can enforce the limits of tasks that require
/// it
/// (`enforce: required`). Failure: impossible, with the reason.
Status check_enforced(Context& context, const Resources& resources);

}  // namespace berth::run
