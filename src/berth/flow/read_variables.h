// The variables of a step: its `foreach`, `zip`, `join` or `group`, and its `key`. Pure.
#pragma once

#include "berth/flow/notation.h"

namespace berth::flow {

/// What a text that names files stands for.
using SourceOf = std::function<Result<Source>(const std::string& text, const Field& at)>;

/// Fills `variables`, `combine`, `by` and `key` of the step, whose `params` are known. Errors:
/// invalid, at the key that is wrong.
Status read_variables(const Field& field, const SourceOf& source, Step& step);

}  // namespace berth::flow
