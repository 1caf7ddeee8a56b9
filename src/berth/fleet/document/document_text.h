// The text of a fleet document, in which single values are changed while its comments, its layout
// and all other values stay as they are.
//
// Pure; any thread. Precondition of every function: parse_json() accepts the text with comments.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::fleet {

/// The bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0, end = 0;
  std::string_view in(std::string_view text) const { return text.substr(begin, end - begin); }
};

/// A key of an object and its value.
struct Member {
  std::string key;
  Span name;  // with its quotes
  Span value;
};

/// The value that the text is, without the comments around it.
Span root_of(std::string_view text);
bool is_object(std::string_view text, const Span& value);
bool is_list(std::string_view text, const Span& value);
/// The members of an object and the elements of a list, in their order; empty for other values.
std::vector<Member> members_of(std::string_view text, const Span& object);
std::vector<Span> elements_of(std::string_view text, const Span& list);
/// The last member with this key, in any case. nullopt: there is none, or the value is no object.
std::optional<Member> member_of(std::string_view text, const Span& object, std::string_view key);
/// Whether the object has the key with exactly this text as its value.
bool has_text(std::string_view text, const Span& object, std::string_view key,
              std::string_view value);
/// The indentation of the line that begins with the byte at `begin`. nullopt: the line begins with
/// something else.
std::optional<std::string> indentation_at(std::string_view text, std::size_t begin);

/// Changes to a text, which take effect together. They must not overlap.
class TextChanges {
 public:
  explicit TextChanges(std::string_view text) : text_(text) {}

  void replace(const Span& value, std::string with);
  /// Adds items (`"key": value`, or elements) at the end of an object or list. They stand on lines
  /// of their own if the last item does.
  void append(const Span& container, const std::vector<std::string>& items);
  std::string apply() const;

 private:
  std::string_view text_;
  std::vector<std::pair<Span, std::string>> changes_;
};

}  // namespace berth::fleet
