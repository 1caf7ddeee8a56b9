// `script:` of a step: a body of several lines for any interpreter. Pure.
#pragma once

#include "berth/base/document.h"
#include "berth/flow/flow.h"

namespace berth::flow {

/// Fills `script`, and `run` with the words that start it: those of `shell` (a program, or a list
/// of words), else of the body's first line where that begins with #!, else of the strict bash.
/// Errors: invalid, at the key that is wrong.
Status read_script(const Field& step_field, const Field& script, Step& step);

}  // namespace berth::flow
