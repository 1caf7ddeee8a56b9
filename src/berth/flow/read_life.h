// Keys of a flow and its steps that say how files live, and what follows when a run ends. Pure.
#pragma once

#include "berth/base/document.h"
#include "berth/flow/notation.h"

namespace berth::flow {

/// Reads `depfile` into the step, which has its inputs and outputs; `known`: the names of values.
/// The names that it uses. Errors: invalid, at the key that is wrong.
Result<std::vector<std::string>> read_depfile_key(const Field& step_field, const KnownNames& known,
                                                  Step& step);

/// Reads `temp` and `protect` into the step, which has its outputs. Errors: invalid.
Status read_lifetimes(const Field& step_field, Step& step);

/// Reads `on_end` of a file into the flow, with the file's `shell`. Errors: invalid.
Status read_on_end(const Field& root, const Words& shell, Flow& flow);

/// Checks that a depfile is read only where its task runs beside the flow's folder: on this
/// machine, without a container. Errors: invalid, with file and line.
Status check_depfiles(const Flow& flow);
/// Checks that somebody reads what is temporary. Errors: invalid, with file and line.
Status check_temporary(const Flow& flow);

}  // namespace berth::flow
