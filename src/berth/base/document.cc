#include "berth/base/document.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <unordered_set>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth {
namespace {

constexpr int kDeepest = 64;
constexpr std::int64_t kMostValues = 1'000'000;
constexpr std::size_t kMostText = 64U << 20;

/// Copies yaml-cpp's graph into our tree, with bounds, of which an alias bomb meets one.
class Converter {
 public:
  explicit Converter(const std::string& file) : file_(file) {}

  Status convert(const YAML::Node& from, DocumentNode& to, int depth) {
    to.line = from.Mark().is_null() ? 0 : from.Mark().line + 1;
    if (depth > kDeepest) return refuse(to.line, "nested too deep");
    if (++values_ > kMostValues) return refuse(to.line, "too many values");
    if (from.IsScalar()) {
      if ((text_size_ += from.Scalar().size()) > kMostText) return refuse(to.line, "too much text");
      to.text = from.Scalar();
      to.quoted = from.Tag() == "!";
      const bool null = !to.quoted && (to.text.empty() || to.text == "~" || to.text == "null");
      to.kind = null ? DocumentNode::Kind::null : DocumentNode::Kind::scalar;
    } else if (from.IsSequence()) {
      to.kind = DocumentNode::Kind::list;
      for (const auto& item : from) BERTH_TRY(convert(item, to.list.emplace_back(), depth + 1));
    } else if (from.IsMap()) {
      to.kind = DocumentNode::Kind::map;
      std::unordered_set<std::string_view> seen;
      for (const auto& entry : from) {
        const YAML::Node& key = entry.first;
        if (!key.IsScalar()) return refuse(to.line, "a key must be a plain word");
        if (!seen.insert(key.Scalar()).second)
          return refuse(key.Mark().line + 1,
                        fmt::format("'{}' is given twice", clip(key.Scalar())));
        BERTH_TRY(convert_entry(key, entry.second, to, depth));
      }
    }
    return {};
  }

 private:
  Status convert_entry(const YAML::Node& key, const YAML::Node& value, DocumentNode& to,
                       int depth) {
    if ((text_size_ += key.Scalar().size()) > kMostText) return refuse(to.line, "too much text");
    auto& added = to.map.emplace_back(key.Scalar(), DocumentNode{}).second;
    BERTH_TRY(convert(value, added, depth + 1));
    added.line = key.Mark().line + 1;  // where a person looks for it, wherever the value begins
    return {};
  }

  Status refuse(int line, std::string_view what) const {
    return fail(ErrorKind::invalid, "{}:{}: {}", file_, line, what);
  }

  const std::string& file_;
  std::int64_t values_ = 0;
  std::size_t text_size_ = 0;
};

/// Where a byte stands that YAML does not allow. yaml-cpp would take some for the end of the file.
std::optional<std::int64_t> line_of_control(std::string_view text) {
  const auto at = std::ranges::find_if(text, [](unsigned char c) {
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
  });
  if (at == text.end()) return std::nullopt;
  return std::count(text.begin(), at, '\n') + 1;
}

std::optional<int> line_not_utf8(std::string_view text) {
  int line = 0;
  for (const auto part : split(text, '\n')) {
    ++line;
    if (valid_utf8(part) != part) return line;
  }
  return std::nullopt;
}

std::string describe(const DocumentNode& node) {
  switch (node.kind) {
    case DocumentNode::Kind::null: return "nothing";
    case DocumentNode::Kind::scalar: return fmt::format("'{}'", clip(node.text));
    case DocumentNode::Kind::list: return "a list";
    case DocumentNode::Kind::map: return "a map";
  }
  return {};
}

}  // namespace

DocumentNode::DocumentNode() = default;
DocumentNode::DocumentNode(DocumentNode&&) noexcept = default;
DocumentNode& DocumentNode::operator=(DocumentNode&&) noexcept = default;
DocumentNode::~DocumentNode() = default;

Result<Field> Field::parse(std::string_view text, std::string file) {
  auto root = std::make_shared<DocumentNode>();
  auto name = std::make_shared<const std::string>(std::move(file));
  if (const auto line = line_not_utf8(text))
    return fail(ErrorKind::invalid, "{}:{}: not UTF-8 text", *name, *line);
  if (const auto line = line_of_control(text))
    return fail(ErrorKind::invalid, "{}:{}: not text: holds a control character", *name, *line);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1)
      return fail(ErrorKind::invalid, "{}:{}: a second document; wanted one", *name,
                  documents[1].Mark().line + 1);
    if (!documents.empty()) BERTH_TRY(Converter(*name).convert(documents[0], *root, 0));
  } catch (const YAML::Exception& error) {
    return fail(ErrorKind::invalid, "{}:{}: not YAML: {}", *name, error.mark.line + 1, error.msg);
  }
  return Field(std::move(root), std::move(name), "");
}

Field Field::child(const DocumentNode& node, std::string path) const {
  return Field({node_, &node}, file_, std::move(path));
}

std::unexpected<Error> Field::error(std::string_view message) const {
  return fail(ErrorKind::invalid, "{}:{}: {}{}{}", *file_, std::max(node_->line, 1), path_,
              path_.empty() ? "" : ": ", message);
}

Status Field::expect_keys(std::initializer_list<std::string_view> keys) const {
  if (!is_map()) return error(fmt::format("wanted a map, found {}", describe(*node_)));
  const std::span<const std::string_view> known(keys.begin(), keys.size());
  for (const auto& [key, value] : node_->map) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const auto meant = nearest(key, known);
    const std::string advice =
        meant.empty() ? fmt::format("known are: {}",
                                    join(std::vector<std::string>(keys.begin(), keys.end()), ", "))
                      : fmt::format("did you mean '{}'?", meant);
    const Field at = child(value, path_);
    return at.error(fmt::format("unknown key '{}'; {}", clip(key), advice));
  }
  return {};
}

std::optional<Field> Field::find(std::string_view key) const {
  for (const auto& [present, value] : node_->map)
    if (present == key && value.kind != DocumentNode::Kind::null)
      return child(value, path_.empty() ? present : path_ + "." + present);
  return std::nullopt;
}

Result<Field> Field::get(std::string_view key) const {
  if (!is_map()) return error(fmt::format("wanted a map, found {}", describe(*node_)));
  if (auto field = find(key)) return *std::move(field);
  return error(fmt::format("'{}' is missing", key));
}

Result<std::vector<std::pair<std::string, Field>>> Field::entries() const {
  if (!is_map()) return error(fmt::format("wanted a map, found {}", describe(*node_)));
  std::vector<std::pair<std::string, Field>> result;
  for (const auto& [key, value] : node_->map)
    result.emplace_back(key, child(value, path_.empty() ? key : path_ + "." + key));
  return result;
}

Result<std::vector<Field>> Field::items() const {
  if (!is_list()) return error(fmt::format("wanted a list, found {}", describe(*node_)));
  std::vector<Field> result;
  for (const auto& item : node_->list)
    result.push_back(child(item, fmt::format("{}[{}]", path_, result.size())));
  return result;
}

Result<std::string> Field::text() const {
  if (!is_scalar()) return error(fmt::format("wanted text, found {}", describe(*node_)));
  return node_->text;
}

Result<std::int64_t> Field::integer() const {
  if (!is_scalar()) return error(fmt::format("wanted a whole number, found {}", describe(*node_)));
  const auto value = parse_integer(node_->text);
  if (!value) return error(value.error());
  return *value;
}

Result<double> Field::number() const {
  if (!is_scalar()) return error(fmt::format("wanted a number, found {}", describe(*node_)));
  const auto value = parse_number(node_->text);
  if (!value) return error(value.error());
  return *value;
}

Result<Duration> Field::duration() const {
  if (!is_scalar()) return error(fmt::format("wanted a duration, found {}", describe(*node_)));
  const auto value = parse_duration(node_->text);
  if (!value) return error(value.error());
  return *value;
}

Result<std::size_t> Field::choice(std::span<const std::string_view> choices) const {
  if (is_scalar())
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (choices[i] == node_->text) return i;
  const std::vector<std::string> names(choices.begin(), choices.end());
  return error(fmt::format("wanted one of {}; found {}", join(names, ", "), describe(*node_)));
}

}  // namespace berth
