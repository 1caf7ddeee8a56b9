#include "berth/exec/labels.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::exec {
namespace {

bool valid_label_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && name.size() <= kMostLabelName && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) {
           return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
         });
}

bool valid_label_value(std::string_view value) {
  return value.size() <= kMostLabelValue && clip(value, kMostLabelValue) == value;
}

}  // namespace

Status set_label(std::string_view name, std::string_view value, Labels& labels) {
  if (!valid_label_name(name))
    return fail(
        ErrorKind::invalid,
        "'{}': a label's name is made of letters, digits, '_', '.' and '-', at most {}, and "
        "begins with a letter",
        clip(name), kMostLabelName);
  if (name == "run" || name == "program")
    return fail(ErrorKind::invalid, "'{}' is what Berth itself calls every run by", name);
  if (!valid_label_value(value))
    return fail(ErrorKind::invalid, "{}: a label's value is text of at most {} bytes in one line",
                name, kMostLabelValue);
  const auto known = std::ranges::find(labels, name, &std::pair<std::string, std::string>::first);
  if (known != labels.end()) {
    known->second = value;
    return {};
  }
  if (labels.size() == kMostLabels)
    return fail(ErrorKind::invalid, "more than {} labels", kMostLabels);
  labels.emplace_back(name, value);
  return {};
}

Status read_labels(const Field& map, Labels& labels) {
  const auto field = map.find("labels");
  if (!field) return {};
  if (!field->is_map()) return field->error("expected names and values: labels: {team: vision}");
  BERTH_ASSIGN(const auto entries, field->entries());
  for (const auto& [name, value] : entries) {
    BERTH_ASSIGN(const std::string text, value.text());
    if (const auto set = set_label(name, text, labels); !set) return value.error(set.error());
  }
  return {};
}

Status add_label(std::string_view text, Labels& labels) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos)
    return fail(ErrorKind::usage, "--label: expected NAME=VALUE, got '{}'", clip(text));
  if (const auto set = set_label(text.substr(0, equals), text.substr(equals + 1), labels); !set)
    return fail(ErrorKind::usage, "--label: {}", set.error().message);
  return {};
}

bool fits_label(std::string_view filter, const Labels& labels) {
  const auto equals = filter.find('=');
  const auto known = std::ranges::find(labels, filter.substr(0, equals),
                                       &std::pair<std::string, std::string>::first);
  return known != labels.end() &&
         (equals == std::string_view::npos || known->second == filter.substr(equals + 1));
}

std::string to_text(const Labels& labels) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : labels) parts.push_back(name + "=" + value);
  return join(parts, ",");
}

}  // namespace berth::exec
