// JSON values by nlohmann, keys in the order in which they were added. This header only declares:
// the full library costs seconds a file to compile, so only files that build or take apart JSON
// include <nlohmann/json.hpp>.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "berth/base/result.h"

namespace berth {

using Json = nlohmann::ordered_json;

/// One line; bytes that are not UTF-8 are replaced, never thrown about.
std::string dump(const Json& value);
/// Adds an entry to a map that does not have its key: in constant time, where `map[key]` compares
/// the key with all others. Returns its value.
Json& append(Json& map, std::string key, Json value);
/// What is done with `// …` and `/* … */`, which JSON has not, and people's files may have.
enum class JsonComments : std::uint8_t { refused, skipped };
/// invalid: names the offset. At most 64 deep.
Result<Json> parse_json(std::string_view text, JsonComments comments = JsonComments::refused);
/// The value of a text of our own; null where the text is empty, or none.
Json parsed_or_null(const std::string& text);
/// The same value on one line and in UTF-8, without escapes such as \u00e4. Errors: as
/// parse_json().
Result<std::string> compact_json(std::string_view text);
/// The same for those who only ask whether it is JSON.
Status check_json(std::string_view text);

}  // namespace berth
