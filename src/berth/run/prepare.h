// What is checked of a command before anything is recorded.
#pragma once

#include <optional>
#include <string>

#include "berth/exec/command.h"
#include "berth/os/env.h"
#include "berth/run/site.h"

namespace berth::run {

/// The program that the command starts, where that can be told without a shell.
std::optional<std::string> first_program(const exec::Command& command);

/// That it is there (in PATH, or from `directory`) and can be executed. not_found, invalid.
Status check_executable(os::Env& env, const std::string& program, const std::string& directory);

/// That the shell which the command needs, if any, is there: not_found, with what to do.
Status check_shell(os::Env& env, const exec::Command& command, const std::string& directory);

/// Of tasks whose limits must hold (`enforce: required`), as far as reading tells. impossible: this
/// machine cannot hold them, with the reason.
Status check_enforced(Site& site, const Resources& resources);

}  // namespace berth::run
