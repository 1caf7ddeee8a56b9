#include "berth/flow/depfile.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::flow {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/// Reads the words of rules one after another.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  Result<Words> read() {
    Words found;
    while (next_rule()) {
      bool targets = true;
      while (const auto word = next_word()) {
        const bool last_target = targets && word->is_target;
        if (!targets) found.push_back(word->text);
        if (last_target) targets = false;
        if (word->text.size() > fileset::kMostPath) return wrong("a path is too long");
      }
      if (targets) return wrong("expected 'TARGET: FILE…' as compilers write it, got no ':'");
      ++rules_;
    }
    if (rules_ == 0) return fail(ErrorKind::invalid, "there is no rule in it");
    std::ranges::sort(found);
    const auto again = std::ranges::unique(found);
    found.erase(again.begin(), again.end());
    return found;
  }

 private:
  struct Word {
    std::string text;
    bool is_target = false;  // a ':' stands behind it
  };

  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorKind::invalid, "line {}: {}", line_, what);
  }

  char at(std::size_t offset) const {
    return at_ + offset < text_.size() ? text_[at_ + offset] : '\0';
  }
  /// Bytes of the end of line at this offset; 0: there is none.
  std::size_t end_of_line(std::size_t offset) const {
    if (at(offset) == '\n') return 1;
    return at(offset) == '\r' && at(offset + 1) == '\n' ? 2 : 0;
  }
  bool at_end() const { return at_ >= text_.size(); }

  void skip_blanks() {
    for (;;) {
      if (at(0) == '\\' && end_of_line(1) > 0) {
        at_ += 1 + end_of_line(1);
        ++next_line_;
      } else if (!at_end() && is_blank(at(0)) && end_of_line(0) == 0) {
        ++at_;
      } else {
        return;
      }
    }
  }

  void skip_comment() {
    while (!at_end() && end_of_line(0) == 0) ++at_;
  }

  bool next_rule() {
    for (;;) {
      skip_blanks();
      if (at(0) == '#') skip_comment();
      if (at_end()) return false;
      line_ = next_line_;
      if (end_of_line(0) == 0) return true;
      at_ += end_of_line(0);
      ++next_line_;
    }
  }

  /// Of this rule; nullopt at its end.
  std::optional<Word> next_word() {
    skip_blanks();
    if (at(0) == '#') skip_comment();
    if (at_end() || end_of_line(0) > 0) return std::nullopt;
    Word word;
    while (!at_end() && !is_blank(at(0)) && end_of_line(0) == 0) {
      if (at(0) == ':' && (at_ + 1 >= text_.size() || is_blank(at(1)) || end_of_line(1) > 0 ||
                           (at(1) == '\\' && end_of_line(2) > 0))) {
        ++at_;
        word.is_target = true;
        return word;
      }
      if (at(0) == '\\' && end_of_line(1) > 0) return word;
      if (!take_escape(word.text)) word.text += text_[at_++];
    }
    // "a.o : a.c"
    skip_blanks();
    if (at(0) == ':' && (at_ + 1 >= text_.size() || is_blank(at(1)) || end_of_line(1) > 0)) {
      ++at_;
      word.is_target = true;
    }
    return word;
  }

  /// Before a blank, half of the backslashes stand for themselves, and an odd one for the blank.
  bool take_escape(std::string& text) {
    if (at(0) == '$' && at(1) == '$') {
      text += '$';
      at_ += 2;
      return true;
    }
    if (at(0) != '\\') return false;
    if (at(1) == '#' || at(1) == ':') {
      text += at(1);
      at_ += 2;
      return true;
    }
    std::size_t count = 0;
    while (at(count) == '\\') ++count;
    const char behind = at(count);
    if (behind != ' ' && behind != '\t') {
      const std::size_t kept = end_of_line(count) > 0 ? count - 1 : count;
      text.append(kept, '\\');
      at_ += kept;
      return kept > 0;
    }
    text.append(count / 2, '\\');
    at_ += count;
    if (count % 2 == 1) text += text_[at_++];
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1, next_line_ = 1, rules_ = 0;
};

/// Without ".", ".." and double slashes.
std::string normal(std::string_view path) {
  std::vector<std::string_view> names;
  for (const auto name : split(path, '/')) {
    if (name.empty() || name == ".") continue;
    if (name != "..")
      names.push_back(name);
    else if (!names.empty())
      names.pop_back();
  }
  std::string text;
  for (const auto name : names) text += fmt::format("/{}", name);
  return text;
}

}  // namespace

Result<Words> read_depfile(std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    return fail(ErrorKind::invalid, "there is a NUL byte in it");
  return RuleReader(text).read();
}

std::string place_of_dependency(std::string_view path, const std::string& directory,
                                const std::string& folder) {
  const std::string plain =
      normal(path.starts_with('/') ? std::string(path) : fmt::format("{}/{}", directory, path));
  for (const auto& root : {normal(directory), normal(folder)})
    if (plain.starts_with(root + "/")) return plain.substr(root.size() + 1);
  return plain;
}

}  // namespace berth::flow
