// What is said of mistakes that people make who come from other tools, or who think of the files of
// one step while they write another. Pure.
#pragma once

#include "berth/base/document.h"
#include "berth/flow/flow.h"

namespace berth::flow {

/// What to write in place of the {name} of a command, where that is none but was meant as one:
/// {reads} for {in.reads}, {input.reads}, {params.lr}, {wildcards.s}, {count.total}; "" where it
/// may well be the command's own. `known`: the names that there are.
std::string advice_on_name(std::string_view name, const Words& known,
                           const std::vector<Step>& steps);

/// The same for a source of files that is written as {count.x}.
std::string advice_on_source(std::string_view text, const std::vector<Step>& steps);

/// What to write in place of a list or one value where names are wanted: "; give it a name, such as
/// out: {x: x.txt}".
std::string advice_on_names(std::string_view key, const Field& found);

}  // namespace berth::flow
