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
inline constexpr std::string_view kStepName =
    "a name is made of letters, digits, '_' and '-', at most 64, and begins with a letter or '_'";
/// [A-Za-z_][A-Za-z0-9_]*, at most 64, neither index nor params_file: of parameters, variables and
/// the parts of a pattern.
bool valid_value_name(std::string_view name);
inline constexpr std::string_view kValueName =
    "a name consists of at most 64 letters, digits and '_', does not begin with a digit, and is "
    "neither params_file nor index";

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

/// The names that may stand in braces at some place of a step. Which names an element has is known
/// only when it is: of those, every one is taken here, and Graph::build() checks it.
struct KnownNames {
  std::vector<std::string> values{};     // parameters, variables, index, key, …
  std::vector<std::string> variables{};  // {x.…} is a name of an element
  bool has(std::string_view name) const;
  bool is_of_element(std::string_view name) const;
};

/// Errors: invalid, at `at`, for a name in braces that is none of `known`.
Status check_names(std::string_view text, const KnownNames& known, const Field& at);

/// The text of a key that is safe in a label and in a path: bytes other than letters, digits,
/// _.=+@:~- and those of UTF-8 letters become %XX; one of more than 100 bytes is cut, and ends in a
/// digest of all of it.
std::string key_text(std::string_view value);

/// What stands for files and steps in a condition. Errors: invalid, at its field.
struct WhenSources {
  std::function<Result<Source>(const std::string& text)> file;
  std::function<Result<StepIndex>(const std::string& name)> step;
};
/// "a == b and not exists(c) and json(d.report, loss) < 0.5". `known`: the names of values.
Result<std::vector<Condition>> read_when(const Field& field, const KnownNames& known,
                                         const WhenSources& sources);
/// Checks what conditions ask of other steps, and notes it there.
Status check_conditions(Flow& flow);

}  // namespace berth::flow
