#include "berth/base/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "berth/base/broken_yaml.h"
#include "berth/base/near_names.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostValues = 1'000'000;
constexpr std::size_t kMostText = 64U << 20;

constexpr std::string_view kMerge = "<<";
constexpr auto kKey = [](const auto& each) -> const std::string& { return each.first; };
constexpr const char* kPlainKey = "a key must be a plain word";

// What stands for the braces of a placeholder while YAML is read: no characters of any text.
constexpr std::string_view kOpen = "\uFDD0", kClose = "\uFDD1";

bool holds_marks(std::string_view text) {
  return text.find(kOpen) != std::string_view::npos || text.find(kClose) != std::string_view::npos;
}

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

/// The text with these marks for the braces of every {name} that adjoins text before it. In
/// comments, quotes and blocks that changes nothing, since with_braces() changes it back.
std::string without_braces(std::string_view text) {
  std::string result;
  constexpr std::string_view kBefore = "/=@%+~";  // and the characters of names
  bool adjoins = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t end = i + 1;
    if (adjoins && text[i] == '{')
      while (end < text.size() && name_char(text[end])) ++end;
    if (end > i + 1 && end < text.size() && text[end] == '}') {
      result.append(kOpen).append(text.substr(i + 1, end - i - 1)).append(kClose);
      i = end;
    } else {
      result += text[i];
      adjoins = name_char(text[i]) || kBefore.find(text[i]) != std::string_view::npos;
    }
  }
  return result;
}

std::string with_braces(const std::string& text) {
  if (!holds_marks(text)) return text;
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto rest = std::string_view(text).substr(i);
    const bool opens = rest.starts_with(kOpen), closes = rest.starts_with(kClose);
    result += opens ? '{' : closes ? '}' : text[i];
    if (opens || closes) i += kOpen.size() - 1;
  }
  return result;
}

/// What ends the reading: thrown through the parser, caught where that is called.
struct Refusal {
  int line;
  std::string what;
};

/// Builds our tree of what the parser finds, within bounds at every step: a bomb of aliases meets
/// one of them.
class Builder final : public YAML::EventHandler {
 public:
  /// Without aliases a text has no more values than bytes.
  explicit Builder(std::size_t text) : most_values_(std::max(kMostValues, text)) {}
  DocumentNode take() { return std::move(root_); }
  YAML::Mark last_quoted() const { return last_quoted_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (begun_) refuse(mark, "more follows the end of the document; a file has one");
    begun_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, {}, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      refuse(mark, "an alias within what it stands for: it would have no end");
    add(mark, copy(mark, found->second, open_.size()), 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    DocumentNode node;
    node.quoted = tag == "!";
    if (node.quoted) last_quoted_ = mark;
    if (node.quoted || !(value.empty() || value == "~" || value == "null")) {
      node.kind = DocumentNode::Kind::scalar;
      node.text = with_braces(value);
    }
    add(mark, std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, DocumentNode::Kind::list, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, DocumentNode::Kind::map, anchor);
  }
  void OnMapEnd() override {
    take_over(open_.back());
    close();
  }

 private:
  struct Open {
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    DocumentNode node;
    std::optional<std::pair<std::string, int>> key;  // that waits for its value, and its line
    std::unordered_map<std::string, int> keys;       // and their lines
    bool takes_over = false;                         // from the map under `<<`
  };

  [[noreturn]] static void refuse(const YAML::Mark& mark, std::string what) {
    throw Refusal{mark.line + 1, std::move(what)};
  }

  void count(const YAML::Mark& mark, std::size_t text) {
    if (++values_ > most_values_) refuse(mark, "too many values");
    if ((text_ += text) > kMostText) refuse(mark, "too much text");
  }

  bool wants_key() const {
    return !open_.empty() && open_.back().node.kind == DocumentNode::Kind::map && !open_.back().key;
  }

  void open(const YAML::Mark& mark, DocumentNode::Kind kind, YAML::anchor_t anchor) {
    if (open_.size() == kDeepest) refuse(mark, "nested too deep");
    if (wants_key()) throw YAML::ParserException(mark, kPlainKey);
    open_.push_back({.mark = mark, .anchor = anchor, .node = {}, .key = {}, .keys = {}});
    open_.back().node.kind = kind;
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(done.mark, std::move(done.node), done.anchor);
  }

  /// What stands under `<<`; of several maps the first that has a key.
  void take_over(Open& map) {
    if (!map.takes_over) return;
    auto& own = map.node.map;
    const auto at = std::ranges::find(own, kMerge, kKey);
    const DocumentNode from = std::move(at->second);
    own.erase(at);
    const bool several = from.kind == DocumentNode::Kind::list;
    for (const auto& each : several ? std::span(from.list) : std::span(&from, 1)) {
      if (each.kind != DocumentNode::Kind::map)
        throw Refusal{from.line, "<<: wanted a map, or a list of maps, such as *NAME"};
      for (const auto& [key, value] : each.map)
        if (map.keys.emplace(key, value.line).second)
          own.emplace_back(key, copy(map.mark, value, open_.size()));
    }
  }

  void add(const YAML::Mark& mark, DocumentNode node, YAML::anchor_t anchor) {
    count(mark, node.text.size());
    node.line = mark.line + 1;
    if (anchor != 0) anchors_.insert_or_assign(anchor, copy(mark, node, open_.size()));
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (wants_key()) {
      add_key(mark, node);
    } else if (Open& parent = open_.back(); parent.key) {
      node.line = parent.key->second;  // where a person looks for it, wherever the value begins
      parent.node.map.emplace_back(std::move(parent.key->first), std::move(node));
      parent.key.reset();
    } else {
      parent.node.list.push_back(std::move(node));
    }
  }

  void add_key(const YAML::Mark& mark, const DocumentNode& node) {
    if (node.kind != DocumentNode::Kind::scalar) throw YAML::ParserException(mark, kPlainKey);
    const auto [earlier, is_new] = open_.back().keys.emplace(node.text, mark.line + 1);
    if (!is_new)
      refuse(mark, fmt::format("'{}' is given twice, first in line {}", clip(node.text),
                               earlier->second));
    open_.back().key = {node.text, mark.line + 1};
    if (!node.quoted && node.text == kMerge) open_.back().takes_over = true;
  }

  DocumentNode copy(const YAML::Mark& mark, const DocumentNode& from, std::size_t depth) {
    if (depth > kDeepest) refuse(mark, "nested too deep");
    count(mark, from.text.size());
    DocumentNode to;
    to.kind = from.kind;
    to.line = from.line;
    to.quoted = from.quoted;
    to.text = from.text;
    for (const auto& item : from.list) to.list.push_back(copy(mark, item, depth + 1));
    for (const auto& [key, value] : from.map) {
      count(mark, key.size());
      to.map.emplace_back(key, copy(mark, value, depth + 1));
    }
    return to;
  }

  DocumentNode root_;
  YAML::Mark last_quoted_ = YAML::Mark::null_mark();
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, DocumentNode> anchors_;  // of what is complete
  std::size_t most_values_;
  std::size_t values_ = 0;
  std::size_t text_ = 0;
  bool begun_ = false;
};

/// The first byte that YAML does not allow. yaml-cpp would take some for the end of the file.
std::optional<std::size_t> find_control(std::string_view text) {
  const auto at = std::ranges::find_if(text, [](unsigned char c) {
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
  });
  if (at == text.end()) return std::nullopt;
  return at - text.begin();
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
    return fail(ErrorKind::invalid, "{}:{}: not UTF-8 text: save it as UTF-8", *name, *line);
  if (const auto at = find_control(text))
    return fail(ErrorKind::invalid, "{}:{}: not text: holds the control character 0x{:02x}", *name,
                std::ranges::count(text.substr(0, *at), '\n') + 1, text[*at]);
  if (holds_marks(text))
    return fail(ErrorKind::invalid, "{}:1: not text: holds U+FDD0 or U+FDD1", *name);
  try {
    const std::string marked = without_braces(text);
    std::istringstream stream{marked};
    YAML::Parser parser(stream);
    Builder builder(text.size());
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
    *root = builder.take();
    if (const auto mark = builder.last_quoted();
        !mark.is_null() && !is_quote_closed(marked, mark.line + 1, mark.column))
      throw YAML::ParserException(mark, "end of quote not found");
  } catch (const Refusal& refusal) {
    return fail(ErrorKind::invalid, "{}:{}: {}", *name, refusal.line, refusal.what);
  } catch (const YAML::Exception& error) {
    const auto broken = explain_yaml(text, error.mark.line + 1, error.msg);
    return fail(ErrorKind::invalid, "{}:{}: {}", *name, broken.line, broken.what);
  }
  return Field(std::move(root), std::move(name), "");
}

Field Field::child(const DocumentNode& node, std::string path) const {
  return Field({node_, &node}, file_, std::move(path));
}

Field Field::own(const std::string& key, const DocumentNode& node) const {
  Field field = child(node, path_.empty() ? key : path_ + "." + key);
  if (!defaults_ || node.kind != DocumentNode::Kind::map) return field;
  const auto other = beside(key);
  return other ? field.with_defaults(*other) : field;
}

std::optional<Field> Field::beside(const std::string& key) const {
  if (!defaults_) return std::nullopt;
  auto field = defaults_->find(key);
  if (field) field->path_ = path_.empty() ? key : path_ + "." + key;
  return field;
}

Field Field::with_defaults(const Field& defaults) const {
  Field field = *this;
  if (is_map() && defaults.is_map()) field.defaults_ = std::make_shared<const Field>(defaults);
  return field;
}

std::unexpected<Error> Field::error(std::string_view message) const {
  return fail(ErrorKind::invalid, "{}:{}: {}{}{}", *file_, std::max(node_->line, 1), path_,
              path_.empty() ? "" : ": ", message);
}

Status Field::expect_keys(std::initializer_list<std::string_view> keys) const {
  if (!is_map()) return wanted_map();
  const std::span<const std::string_view> known(keys.begin(), keys.size());
  for (const auto& [key, value] : node_->map) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const auto meant = meant_key(key, known);
    const std::string advice =
        meant.empty() ? fmt::format("known are: {}",
                                    join(std::vector<std::string>(keys.begin(), keys.end()), ", "))
                      : fmt::format("did you mean '{}'?", meant);
    const Field at = child(value, path_);
    return at.error(fmt::format("unknown key '{}'; {}", clip(key), advice));
  }
  return {};
}

std::unexpected<Error> Field::wanted_map() const {
  const auto colon = is_scalar() ? node_->text.find(':') : std::string::npos;
  if (is_null()) return error("is empty: what belongs to it stands below it, further right");
  if (colon != std::string::npos && node_->text.find(' ') > colon &&
      node_->text.find('/') > colon)  // no address
    return error(fmt::format("wanted a map, found {}; a blank is missing behind '{}:'",
                             describe(*node_), clip(node_->text.substr(0, colon))));
  return error(fmt::format("wanted a map, found {}", describe(*node_)));
}

std::optional<Field> Field::find(std::string_view key) const {
  for (const auto& [present, value] : node_->map) {
    if (present != key) continue;
    if (value.kind == DocumentNode::Kind::null) return std::nullopt;
    return own(present, value);
  }
  return beside(std::string(key));
}

Result<Field> Field::get(std::string_view key) const {
  if (!is_map()) return wanted_map();
  if (auto field = find(key)) return *std::move(field);
  return error(fmt::format("'{}' is missing", key));
}

Result<std::vector<std::pair<std::string, Field>>> Field::entries() const {
  if (!is_map()) return wanted_map();
  std::vector<std::pair<std::string, Field>> result;
  for (const auto& [key, value] : node_->map) result.emplace_back(key, own(key, value));
  if (!defaults_) return result;
  BERTH_ASSIGN(const auto others, defaults_->entries());
  for (const auto& [key, value] : others)
    if (std::ranges::find(node_->map, key, kKey) == node_->map.end())
      if (auto field = beside(key)) result.emplace_back(key, *std::move(field));
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
