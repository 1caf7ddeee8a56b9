// Names, paths and placeholders as flow files write them. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/document.h"
#include "berth/flow/flow.h"

namespace berth::flow {

/// [A-Za-z_][A-Za-z0-9_-]*, at most 64 characters: of steps, inputs and outputs.
bool valid_step_name(std::string_view name);
/// [A-Za-z_][A-Za-z0-9_]*, at most 64, neither index nor params_file: of parameters and variables.
bool valid_value_name(std::string_view name);

/// A path as it is compared: without "." and double slashes or one at its end, ".." in front only.
/// Errors: invalid, with what is wrong with it, for Field::error().
Result<std::string> plain_path(std::string_view path);
/// Whether a plain path lies in the flow's folder.
bool stays_inside(std::string_view plain);
/// Where a task finds a file of the world: at the same path in its own directory, or for one that
/// is not of the flow's folder below "_root" or "_up".
std::string place_of(std::string_view plain);

/// Names in braces of a path.
std::vector<std::string> names_in(std::string_view text);
/// The text with its names replaced; nullopt from `value` leaves a name as it is. Values of a
/// pattern stand for themselves.
std::string expand(std::string_view text,
                   const std::function<std::optional<std::string>(std::string_view)>& value);

/// Errors: invalid, at `at`, for a name in braces that is none of `known`.
Status check_names(std::string_view text, const std::vector<std::string>& known, const Field& at);

/// "a == b and not exists(c)". `known`: the names of values; `source`: what a path stands for.
Result<std::vector<Condition>> read_when(
    const Field& field, const std::vector<std::string>& known,
    const std::function<Result<Source>(const std::string& text)>& source);

}  // namespace berth::flow
