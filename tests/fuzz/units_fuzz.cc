// What is read as an amount is written as text that reads the same, and text stays text.
#include "berth/base/units.h"

#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/resource/resources.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  if (const auto bytes = parse_bytes(text)) {
    BERTH_ASSERT(*bytes >= 0 && parse_bytes(fmt::format("{}", *bytes)) == *bytes);
    BERTH_ASSERT(!format_bytes(*bytes).empty());
  }
  if (const auto milli = parse_milli(text))
    BERTH_ASSERT(parse_milli(format_milli(*milli)) == *milli);
  if (const auto duration = parse_duration(text)) {
    const auto shown = parse_duration(format_duration(*duration));
    BERTH_ASSERT(*duration >= Duration(0) && shown && *shown <= *duration);
    BERTH_ASSERT(format_utc(Wall(*duration)).ends_with('Z'));
  }
  if (const auto integer = parse_integer(text))
    BERTH_ASSERT(parse_integer(fmt::format("{}", *integer)) == *integer);
  if (const auto number = parse_number(text))
    BERTH_ASSERT(parse_number(format_number(*number)) == *number);
  for (const std::string_view resource : {"cpu", "mem", "gpu"})
    if (const auto amount = parse_amount(resource, text)) BERTH_ASSERT(*amount >= 0);
  const std::string valid = valid_utf8(text);
  BERTH_ASSERT(valid.size() == text.size() && valid_utf8(valid) == valid);
  BERTH_ASSERT(valid_utf8(clip(text)) == clip(text) && clip(clip(text, 20), 200) == clip(text, 20));
  BERTH_ASSERT(words(trim(text)) == words(text));
}
