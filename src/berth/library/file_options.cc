#include "berth/library/file_options.h"

#include "berth/base/document.h"

namespace berth::library {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Result<std::vector<std::string>> texts(const Field& list) {
  std::vector<std::string> all;
  BERTH_ASSIGN(const auto items, list.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(all.emplace_back(), item.text());
  }
  return all;
}

/// A list counts as its values under the same name.
Result<Pairs> pairs(const Field& map) {
  Pairs all;
  BERTH_ASSIGN(const auto entries, map.entries());
  for (const auto& [name, field] : entries) {
    std::vector<std::string> values;
    if (field.is_list()) {
      BERTH_ASSIGN(values, texts(field));
    } else {
      BERTH_ASSIGN(values.emplace_back(), field.text());
    }
    for (auto& value : values) all.emplace_back(name, std::move(value));
  }
  return all;
}

Result<bool> flag(const Field& field) {
  BERTH_ASSIGN(const std::string text, field.text());
  if (text != "true" && text != "false") return field.error("expected true or false");
  return text == "true";
}

Result<std::chrono::milliseconds> milliseconds(const Field& field) {
  BERTH_ASSIGN(const Duration duration, field.duration());
  return std::chrono::ceil<std::chrono::milliseconds>(duration);
}

/// Reads the value of a key, if it is there.
template <class Value, class Read>
Status read(const Field& map, std::string_view key, Value& value, const Read& read_value) {
  const auto field = map.find(key);
  if (!field) return {};
  BERTH_ASSIGN(value, read_value(*field));
  return {};
}

}  // namespace

Result<FileOptions> file_options(std::string_view json) {
  const auto text = [](const Field& field) { return field.text(); };
  const auto integer = [](const Field& field) { return field.integer(); };
  FileOptions options;
  BERTH_ASSIGN(const Field map, Field::parse(json, "options"));
  BERTH_TRY(
      map.expect_keys({"name", "parallel", "set", "elsewhere", "labels", "clusters", "retries",
                       "timeout", "allow_failures", "targets", "force", "warm_start"}));
  BERTH_TRY(read(map, "name", options.name, text));
  BERTH_TRY(read(map, "parallel", options.parallel, integer));
  BERTH_TRY(read(map, "set", options.set, pairs));
  BERTH_TRY(read(map, "elsewhere", options.elsewhere, flag));
  BERTH_TRY(read(map, "labels", options.labels, pairs));
  BERTH_TRY(read(map, "clusters", options.clusters, texts));
  std::int64_t retries = 0;
  BERTH_TRY(read(map, "retries", retries, integer));
  if (retries < 0 || retries > 1000) return map.error("retries: expected 0 to 1000");
  options.retries = static_cast<int>(retries);
  BERTH_TRY(read(map, "timeout", options.timeout, milliseconds));
  BERTH_TRY(read(map, "allow_failures", options.allow_failures, integer));
  BERTH_TRY(read(map, "targets", options.targets, texts));
  BERTH_TRY(read(map, "force", options.force, texts));
  BERTH_TRY(read(map, "warm_start", options.warm_start, texts));
  return options;
}

}  // namespace berth::library
