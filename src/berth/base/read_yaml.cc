#include "berth/base/read_yaml.h"

#include <yaml.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/text.h"
#include "berth/base/yaml_marks.h"

namespace berth {
namespace {

using Kind = DocumentNode::Kind;

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostValues = 1'000'000;
constexpr std::size_t kMostText = 64U << 20;
constexpr std::size_t kManyKeys = 16;  // from where on they are looked up in a table

constexpr std::string_view kMerge = "<<";
constexpr const char* kPlainKey = "a key must be a plain word";

struct Parser {
  Parser() { BERTH_ASSERT(yaml_parser_initialize(&raw) == 1); }
  ~Parser() { yaml_parser_delete(&raw); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  yaml_parser_t raw;
};

struct Event {
  Event() = default;
  ~Event() { yaml_event_delete(&raw); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  yaml_event_t raw{};
};

std::string_view view(const yaml_char_t* text) {
  return text ? std::string_view(reinterpret_cast<const char*>(text)) : std::string_view();
}

/// Builds our tree of what the library finds, within bounds at every step: a bomb of aliases meets
/// one of them.
class Builder {
 public:
  /// Without aliases a text has no more values than bytes.
  Builder(std::string_view text, Document& document)
      : text_(text), document_(document), most_values_(std::max(kMostValues, text.size())) {}

  std::optional<BrokenYaml> read(Parser& parser) {
    for (bool ended = false; !ended && !broken_;) {
      Event event;
      if (yaml_parser_parse(&parser.raw, &event.raw) != 1) return library_error(parser.raw);
      ended = event.raw.type == YAML_STREAM_END_EVENT;
      take(event.raw);
    }
    return broken_;
  }

 private:
  struct Open {
    DocumentNode node;
    std::string anchor;
    std::size_t first = 0;  // of its children among those that are waiting
    bool has_key = false;   // that waits for its value
    bool takes_over = false;
    std::string_view key{};
    int key_line = 0;
  };

  void refuse(int line, std::string what) {
    if (!broken_) broken_ = {line, std::move(what)};
  }
  void explain(int line, std::string_view message) {
    if (!broken_) broken_ = explain_yaml(text_, line, message);
  }

  std::optional<BrokenYaml> library_error(const yaml_parser_t& parser) {
    const std::string_view problem = parser.problem ? parser.problem : "";
    const int line = static_cast<int>(parser.problem_mark.line) + 1;
    if (begun_ && problem.contains("document start"))
      refuse(line, kMore);
    else
      explain(line, problem);
    return broken_;
  }

  void take(const yaml_event_t& event) {
    const int line = static_cast<int>(event.start_mark.line) + 1;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (begun_) refuse(line, kMore);
        begun_ = true;
        return;
      case YAML_ALIAS_EVENT: return add_alias(line, view(event.data.alias.anchor));
      case YAML_SCALAR_EVENT: return add_scalar(line, event);
      case YAML_SEQUENCE_START_EVENT:
        return open(line, Kind::list, view(event.data.sequence_start.anchor));
      case YAML_MAPPING_START_EVENT:
        return open(line, Kind::map, view(event.data.mapping_start.anchor));
      case YAML_MAPPING_END_EVENT:
        check_keys();
        if (open_.back().takes_over) take_over();
        return close();
      case YAML_SEQUENCE_END_EVENT: return close();
      default: return;
    }
  }

  void add_scalar(int line, const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    const std::string_view value(reinterpret_cast<const char*>(scalar.value), scalar.length);
    DocumentNode node{.line = line};
    node.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE || view(scalar.tag) == "!";
    const bool null =
        value.empty() || value == "~" || value == "null" || value == "Null" || value == "NULL";
    if (node.quoted || !null) {
      node.kind = Kind::scalar;
      node.text = may_be_marked(value) ? keep(unmarked(value)) : keep(value);
    }
    add(node, view(scalar.anchor));
  }

  void add_alias(int line, std::string_view name) {
    if (std::ranges::find(open_, name, &Open::anchor) != open_.end())
      return refuse(line, "an alias within its own anchor: it would never end");
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) return explain(line, "anchor is not defined");
    DocumentNode node = found->second;
    for (const auto& child : node.children) count_again(line, child, open_.size() + 1);
    node.key = {};
    node.line = line;
    add(node, {});
  }

  void count(int line, std::size_t text) {
    if (++values_ > most_values_) refuse(line, "too many values");
    if ((text_bytes_ += text) > kMostText) refuse(line, "too much text");
  }

  /// What stands in the tree once more counts once more: whoever goes through it meets it as often.
  void count_again(int line, const DocumentNode& node, std::size_t depth) {
    if (depth > kDeepest) refuse(line, "nested too deep");
    if (broken_) return;
    count(line, node.text.size() + node.key.size());
    for (const auto& child : node.children) count_again(line, child, depth + 1);
  }

  bool wants_key() const {
    return !open_.empty() && open_.back().node.kind == Kind::map && !open_.back().has_key;
  }

  void open(int line, Kind kind, std::string_view anchor) {
    if (open_.size() == kDeepest) return refuse(line, "nested too deep");
    if (wants_key()) return explain(line, kPlainKey);
    open_.push_back({.node = {.kind = kind, .line = line},
                     .anchor = std::string(anchor),
                     .first = waiting_.size()});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    done.node.children = keep(std::span(waiting_).subspan(done.first));
    waiting_.resize(done.first);
    add(done.node, done.anchor);
  }

  void add(DocumentNode node, std::string_view anchor) {
    count(node.line, node.text.size());
    if (!anchor.empty()) anchors_.insert_or_assign(std::string(anchor), node);
    if (open_.empty()) {
      document_.root = node;
    } else if (wants_key()) {
      add_key(node);
    } else {
      Open& parent = open_.back();
      if (parent.node.kind == Kind::map) {
        node.key = parent.key;
        node.line = parent.key_line;  // where a person looks for it, wherever the value begins
        parent.has_key = false;
      }
      waiting_.push_back(node);
    }
  }

  void add_key(const DocumentNode& node) {
    if (node.kind != Kind::scalar) return explain(node.line, kPlainKey);
    Open& map = open_.back();
    map.key = node.text;
    map.key_line = node.line;
    map.has_key = true;
    if (!node.quoted && node.text == kMerge) map.takes_over = true;
  }

  void check_keys() {
    const auto own = std::span(waiting_).subspan(open_.back().first);
    const auto twice = [&](const DocumentNode& first, const DocumentNode& second) {
      refuse(second.line,
             fmt::format("'{}' is given twice, first in line {}", clip(second.key), first.line));
    };
    if (own.size() > kManyKeys) {
      std::unordered_map<std::string_view, const DocumentNode*> known(own.size());
      for (const auto& each : own)
        if (const auto [first, is_new] = known.emplace(each.key, &each); !is_new)
          return twice(*first->second, each);
    } else {
      for (std::size_t i = 0; i < own.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (own[i].key == own[j].key) return twice(own[j], own[i]);
    }
  }

  /// What stands under `<<`; of several maps the first that has a key.
  void take_over() {
    const auto own = waiting_.begin() + static_cast<std::ptrdiff_t>(open_.back().first);
    const auto at = std::find_if(own, waiting_.end(),
                                 [](const DocumentNode& each) { return each.key == kMerge; });
    const DocumentNode from = *at;
    waiting_.erase(at);
    const int line = open_.back().node.line;
    std::unordered_set<std::string_view> known;
    for (const auto& each : std::span(waiting_).subspan(open_.back().first)) known.insert(each.key);
    const bool several = from.kind == Kind::list;
    for (const auto& each : several ? from.children : std::span(&from, 1)) {
      if (each.kind != Kind::map)
        return refuse(from.line, "<<: expected a map, or a list of maps, such as *NAME");
      for (const auto& value : each.children) {
        if (!known.insert(value.key).second) continue;
        count_again(line, value, open_.size());
        if (broken_) return;
        waiting_.push_back(value);
      }
    }
  }

  std::string_view keep(std::string_view text) {
    if (text.empty()) return {};
    auto* copy = static_cast<char*>(document_.memory.allocate(text.size(), 1));
    std::memcpy(copy, text.data(), text.size());
    return {copy, text.size()};
  }

  std::span<const DocumentNode> keep(std::span<const DocumentNode> nodes) {
    if (nodes.empty()) return {};
    auto* copy = static_cast<DocumentNode*>(
        document_.memory.allocate(nodes.size_bytes(), alignof(DocumentNode)));
    std::ranges::uninitialized_copy(nodes, std::span(copy, nodes.size()));
    return {copy, nodes.size()};
  }

  static constexpr const char* kMore = "more follows the end of the document; a file has one";

  const std::string_view text_;
  Document& document_;
  std::optional<BrokenYaml> broken_;
  std::vector<Open> open_;
  std::vector<DocumentNode> waiting_;                         // children of what is open
  std::map<std::string, DocumentNode, std::less<>> anchors_;  // of what is complete
  std::size_t most_values_;
  std::size_t values_ = 0;
  std::size_t text_bytes_ = 0;
  bool begun_ = false;
};

}  // namespace

std::optional<BrokenYaml> read_yaml(std::string_view text, Document& document) {
  if (auto none = find_no_text(text)) return none;
  const std::string input = marked(text);
  Parser parser;
  yaml_parser_set_input_string(&parser.raw, reinterpret_cast<const unsigned char*>(input.data()),
                               input.size());
  return Builder(text, document).read(parser);
}

}  // namespace berth
