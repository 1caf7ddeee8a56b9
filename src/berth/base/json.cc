#include "berth/base/json.h"

#include <nlohmann/json.hpp>

namespace berth {
namespace {

constexpr int kDeepestJson = 64;

}  // namespace

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> parse_json(std::string_view text) {
  bool too_deep = false;
  const auto bounded = [&](int depth, Json::parse_event_t event, Json&) {
    const bool opens =
        event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start;
    if (opens && depth >= kDeepestJson) too_deep = true;
    return !too_deep;
  };
  try {
    Json value = Json::parse(text, bounded);
    if (too_deep) return fail(ErrorKind::invalid, "JSON nested more than {} deep", kDeepestJson);
    return value;
  } catch (const Json::exception& error) {
    return fail(ErrorKind::invalid, "not JSON: {}", error.what());
  }
}

Status check_json(std::string_view text) {
  BERTH_TRY(parse_json(text));
  return {};
}

}  // namespace berth
