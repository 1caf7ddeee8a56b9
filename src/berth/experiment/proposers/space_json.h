// The search of an adaptive program as JSON: its space, method and budget.
#pragma once

#include "berth/base/json.h"
#include "berth/experiment/program.h"

namespace berth::experiment {

Json params_json(const std::vector<Parameter>& params);
Json search_json(const Search& search);
/// These throw, as the library does, where it is none.
std::vector<Parameter> params_of(const Json& json);
Search search_of(const Json& json);

}  // namespace berth::experiment
