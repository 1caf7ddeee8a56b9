// Files beside a flow's file that a command uses and no input names: a task has a directory of its
// own, in which they are not.
#pragma once

#include "berth/flow/flow.h"
#include "berth/os/env.h"

namespace berth::run {

/// Whether an input of the step may put a file there in a task's directory. `path` is plain.
bool may_be_input(const flow::Step& step, std::string_view path);

/// Checks a program that is started by a relative path. Failure: invalid, with what to write.
Status check_own_program(os::Env& env, const flow::Step& step, const std::string& program,
                         const std::string& directory);

/// A sentence for each file in `directory` that a command names and its tasks will not have, a few
/// at most.
flow::Words notes_of_own_files(os::Env& env, const flow::Flow& flow, const std::string& directory);

}  // namespace berth::run
