#include "berth/fleet/document/document_text.h"

#include <algorithm>

#include "berth/base/json_place.h"
#include "berth/base/text.h"

namespace berth::fleet {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kJsonBlanks = " \t\r\n";

/// The end of the comment that begins at `at`; `at` itself if none does.
std::size_t end_of_comment(std::string_view text, std::size_t at) {
  const auto start = text.substr(at, 2);
  const std::string_view closing = start == "//" ? "\n" : start == "/*" ? "*/" : "";
  if (closing.empty()) return at;
  const auto end = text.find(closing, at + 2);
  if (end == text.npos) return text.size();
  return start == "//" ? end : end + closing.size();
}

/// The first byte from `at` that belongs to neither a blank nor a comment.
std::size_t skip_blank(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const auto next =
        kJsonBlanks.find(text[at]) != kJsonBlanks.npos ? at + 1 : end_of_comment(text, at);
    if (next == at) break;
    at = next;
  }
  return at;
}

std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

std::size_t end_of_value(std::string_view text, std::size_t at) {
  if (text[at] == '"') return end_of_string(text, at);
  if (text[at] != '{' && text[at] != '[')
    return std::min(text.find_first_of(",]}/ \t\r\n", at), text.size());
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
      continue;
    }
    if (const auto comment = end_of_comment(text, at); comment != at) {
      at = comment;
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return at;
}

Span value_at(std::string_view text, std::size_t at) {
  const auto begin = skip_blank(text, at);
  return {begin, begin < text.size() ? end_of_value(text, begin) : begin};
}

/// Calls visit(begin), which returns the end of the item, for each item of an object or a list.
template <class Visit>
void each_item(std::string_view text, const Span& container, const Visit& visit) {
  std::size_t at = skip_blank(text, container.begin + 1);
  while (at + 1 < container.end) {
    at = skip_blank(text, visit(at));
    if (at < container.end && text[at] == ',') at = skip_blank(text, at + 1);
  }
}

std::string string_of(std::string_view quoted) {
  const auto value = JsonPlace::parse(quoted);
  return value ? value->text().value_or("") : "";
}

/// The end of the line if nothing but blanks and comments follows in it.
std::optional<std::size_t> end_of_quiet_line(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '\n') {
    const auto comment = end_of_comment(text, at);
    if (comment == at && kJsonBlanks.find(text[at]) == kJsonBlanks.npos) return std::nullopt;
    if (text.substr(at, comment - at).find('\n') != std::string_view::npos) return std::nullopt;
    at = std::max(comment, at + 1);
  }
  if (at > 0 && at < text.size() && text[at - 1] == '\r') --at;
  return at;
}

}  // namespace

Span root_of(std::string_view text) {
  return value_at(text, text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
}

bool is_object(std::string_view text, const Span& value) {
  return value.in(text).starts_with('{');
}

bool is_list(std::string_view text, const Span& value) {
  return value.in(text).starts_with('[');
}

std::vector<Member> members_of(std::string_view text, const Span& object) {
  std::vector<Member> members;
  if (!is_object(text, object)) return members;
  each_item(text, object, [&](std::size_t begin) {
    const Span name{begin, end_of_string(text, begin)};
    const Span value = value_at(text, skip_blank(text, name.end) + 1);  // after the colon
    members.push_back({string_of(name.in(text)), name, value});
    return value.end;
  });
  return members;
}

std::vector<Span> elements_of(std::string_view text, const Span& list) {
  std::vector<Span> elements;
  if (!is_list(text, list)) return elements;
  each_item(text, list, [&](std::size_t begin) {
    elements.push_back({begin, end_of_value(text, begin)});
    return elements.back().end;
  });
  return elements;
}

std::optional<Member> member_of(std::string_view text, const Span& object, std::string_view key) {
  std::optional<Member> found;
  for (auto& member : members_of(text, object))
    if (lower(member.key) == lower(key)) found = std::move(member);
  return found;
}

bool has_text(std::string_view text, const Span& object, std::string_view key,
              std::string_view value) {
  const auto member = member_of(text, object, key);
  return member && string_of(member->value.in(text)) == value &&
         member->value.in(text).starts_with('"');
}

std::optional<std::string> indentation_at(std::string_view text, std::size_t begin) {
  const auto line = text.substr(0, begin).find_last_of('\n');
  if (line == text.npos) return std::nullopt;
  const auto indentation = text.substr(line + 1, begin - line - 1);
  if (indentation.find_first_not_of(" \t") != text.npos) return std::nullopt;
  return std::string(indentation);
}

void TextChanges::replace(const Span& value, std::string with) {
  changes_.emplace_back(value, std::move(with));
}

void TextChanges::append(const Span& container, const std::vector<std::string>& items) {
  if (items.empty()) return;
  std::optional<Span> last;
  for (const auto& member : members_of(text_, container))
    last = {member.name.begin, member.value.end};
  for (const auto& element : elements_of(text_, container)) last = element;
  const auto insert = [&](std::size_t at, std::string added) {
    changes_.emplace_back(Span{at, at}, std::move(added));
  };
  if (!last) return insert(container.begin + 1, join(items, ", "));
  const auto indentation = indentation_at(text_, last->begin);
  if (!indentation) return insert(last->end, ", " + join(items, ", "));
  const std::string line = "\n" + *indentation;
  // A comment after the last item remains next to it.
  const auto end = end_of_quiet_line(text_, last->end);
  if (!end || *end == last->end) return insert(last->end, "," + line + join(items, "," + line));
  insert(last->end, ",");
  insert(*end, line + join(items, "," + line));
}

std::string TextChanges::apply() const {
  auto changes = changes_;
  std::ranges::stable_sort(changes, {}, [](const auto& change) { return change.first.begin; });
  std::string changed;
  std::size_t at = 0;
  for (const auto& [span, with] : changes) {
    changed.append(text_.substr(at, span.begin - at)).append(with);
    at = span.end;
  }
  return changed.append(text_.substr(at));
}

}  // namespace berth::fleet
