// What the attempts of a step ask for: amounts and time limits that grow with the attempt, or that
// are taken from what earlier runs used. Pure.
#pragma once

#include "berth/base/document.h"
#include "berth/flow/flow.h"

namespace berth::flow {

/// Reads a step's `resources` and `timeout` into it; `params` are those that it may name, and
/// `advice` what earlier runs tell of it. Its `retries` are read already: what any attempt up to
/// the last asks for is checked. Errors: invalid, with file, line and key.
Status read_requests(const Field& field, const std::vector<std::pair<std::string, Words>>& params,
                     const std::vector<Advised>& advice, Step& step);

/// What the attempt of this number asks for, and how long it may run (0: for ever).
Resources resources_of(const Step& step, std::int64_t attempt);
Duration timeout_of(const Step& step, std::int64_t attempt);

/// For people: where the step's amounts that say auto come from, and what later attempts ask for
/// where that differs.
Words request_notes(const Step& step);

/// Checks all attempts anew, where the step got other retries than its file says.
Status check_attempts(const Step& step);

}  // namespace berth::flow
