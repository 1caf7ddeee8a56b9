#include "berth/base/document.h"

#include <algorithm>

#include "berth/base/near_names.h"
#include "berth/base/read_yaml.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth {
namespace {

std::string describe(const DocumentNode& node) {
  switch (node.kind) {
    case DocumentNode::Kind::null: return "nothing";
    case DocumentNode::Kind::scalar: return fmt::format("'{}'", clip(node.text));
    case DocumentNode::Kind::list: return "a list";
    case DocumentNode::Kind::map: return "a map";
  }
  return {};
}

std::vector<std::string_view> names_of(const MapFormat& format) {
  std::vector<std::string_view> names;
  for (const KeyFormat& key : format.keys) names.push_back(key.name);
  return names;
}

}  // namespace

Result<Field> Field::parse(std::string_view text, std::string file) {
  auto document = std::make_shared<Document>(std::move(file));
  if (const auto broken = read_yaml(text, *document))
    return fail(ErrorKind::invalid, "{}:{}: {}", document->file, broken->line, broken->what);
  const DocumentNode& root = document->root;
  return Field(std::move(document), root, "");
}

Field Field::child(const DocumentNode& node, std::string path) const {
  return Field(document_, node, std::move(path));
}

std::string Field::path_of(std::string_view key) const {
  std::string path;
  path.reserve(path_.size() + 1 + key.size());
  if (!path_.empty()) path.append(path_).append(1, '.');
  return path.append(key);
}

Field Field::own(const DocumentNode& node) const {
  Field field = child(node, path_of(node.key));
  if (!defaults_ || node.kind != DocumentNode::Kind::map) return field;
  const auto other = beside(node.key);
  return other ? field.with_defaults(*other) : field;
}

std::optional<Field> Field::beside(std::string_view key) const {
  if (!defaults_) return std::nullopt;
  auto field = defaults_->find(key);
  if (field) field->path_ = path_of(key);
  return field;
}

Field Field::with_defaults(const Field& defaults) const {
  Field field = *this;
  if (is_map() && defaults.is_map()) field.defaults_ = std::make_shared<const Field>(defaults);
  return field;
}

std::unexpected<Error> Field::error(std::string_view message) const {
  return fail(ErrorKind::invalid, "{}:{}: {}{}{}", document_->file, std::max(node_->line, 1), path_,
              path_.empty() ? "" : ": ", message);
}

Status Field::expect_keys(std::initializer_list<std::string_view> keys) const {
  return expect_keys(std::span(keys.begin(), keys.size()));
}

Status Field::expect_keys(const MapFormat& format) const {
  return expect_keys(names_of(format));
}

Status Field::expect_keys(std::span<const std::string_view> keys) const {
  if (!is_map()) return wanted_map();
  for (const auto& value : node_->children)
    if (std::ranges::find(keys, value.key) == keys.end()) return unknown_key(value, keys);
  return {};
}

std::vector<Error> Field::unknown_keys(const MapFormat& format) const {
  std::vector<Error> errors;
  if (!is_map()) return errors;
  const auto keys = names_of(format);
  for (const auto& value : node_->children)
    if (std::ranges::find(keys, value.key) == keys.end())
      errors.push_back(unknown_key(value, keys).error());
  return errors;
}

std::unexpected<Error> Field::unknown_key(const DocumentNode& value,
                                          std::span<const std::string_view> keys) const {
  const Field at = child(value, path_);
  if (value.key.find_first_of("()<>") != std::string_view::npos)
    return at.error(
        fmt::format("unknown key '{}'; within braces a comma begins the next key: quote a value "
                    "that contains a comma",
                    clip(value.key)));
  const auto meant = meant_key(value.key, keys);
  const std::string advice =
      meant.empty() ? fmt::format("known are: {}",
                                  join(std::vector<std::string>(keys.begin(), keys.end()), ", "))
                    : fmt::format("did you mean '{}'?", meant);
  return at.error(fmt::format("unknown key '{}'; {}", clip(value.key), advice));
}

std::unexpected<Error> Field::wanted_map() const {
  const auto colon = is_scalar() ? node_->text.find(':') : std::string_view::npos;
  if (is_null()) return error("is empty: write its content below it, indented");
  if (colon != std::string_view::npos && node_->text.find(' ') > colon &&
      node_->text.find('/') > colon)  // no address
    return error(fmt::format("expected a map, got {}; a blank is missing after '{}:'",
                             describe(*node_), clip(node_->text.substr(0, colon))));
  return error(fmt::format("expected a map, got {}", describe(*node_)));
}

std::optional<Field> Field::find(std::string_view key) const {
  if (is_map())
    for (const auto& value : node_->children) {
      if (value.key != key) continue;
      if (value.kind == DocumentNode::Kind::null) return std::nullopt;
      return own(value);
    }
  return beside(key);
}

Result<Field> Field::get(std::string_view key) const {
  if (!is_map()) return wanted_map();
  if (auto field = find(key)) return *std::move(field);
  return error(fmt::format("'{}' is missing", key));
}

Result<std::vector<std::pair<std::string, Field>>> Field::entries() const {
  if (!is_map()) return wanted_map();
  std::vector<std::pair<std::string, Field>> result;
  result.reserve(node_->children.size());
  for (const auto& value : node_->children) result.emplace_back(value.key, own(value));
  if (!defaults_) return result;
  BERTH_ASSIGN(const auto others, defaults_->entries());
  for (const auto& [key, value] : others)
    if (std::ranges::find(node_->children, key, &DocumentNode::key) == node_->children.end())
      if (auto field = beside(key)) result.emplace_back(key, *std::move(field));
  return result;
}

Result<std::vector<Field>> Field::items() const {
  if (!is_list()) return error(fmt::format("expected a list, got {}", describe(*node_)));
  std::vector<Field> result;
  result.reserve(node_->children.size());
  for (const auto& item : node_->children)
    result.push_back(child(item, fmt::format("{}[{}]", path_, result.size())));
  return result;
}

Result<std::string> Field::text() const {
  if (!is_scalar()) return error(fmt::format("expected text, got {}", describe(*node_)));
  return std::string(node_->text);
}

Result<std::int64_t> Field::integer() const {
  if (!is_scalar()) return error(fmt::format("expected a whole number, got {}", describe(*node_)));
  const auto value = parse_integer(node_->text);
  if (!value) return error(value.error());
  return *value;
}

Result<double> Field::number() const {
  if (!is_scalar()) return error(fmt::format("expected a number, got {}", describe(*node_)));
  const auto value = parse_number(node_->text);
  if (!value) return error(value.error());
  return *value;
}

Result<Duration> Field::duration() const {
  if (!is_scalar()) return error(fmt::format("expected a duration, got {}", describe(*node_)));
  const auto value = parse_duration(node_->text);
  if (!value) return error(value.error());
  return *value;
}

Result<std::size_t> Field::choice(std::span<const std::string_view> choices) const {
  if (is_scalar())
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (choices[i] == node_->text) return i;
  const std::vector<std::string> names(choices.begin(), choices.end());
  return error(fmt::format("expected one of {}; got {}", join(names, ", "), describe(*node_)));
}

}  // namespace berth
