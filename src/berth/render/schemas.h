// The JSON Schemas of the results that have records.
#pragma once

#include <string>

namespace berth::render {

/// An object of schemas by their names, as parts of an OpenAPI document.
std::string schemas_json();

}  // namespace berth::render
