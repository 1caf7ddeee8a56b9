#include "berth/exec/shell_text.h"

#include "berth/base/result.h"
#include "berth/base/text.h"

namespace berth::exec {
namespace {

/// Whether quotes, comments and brackets mean in a frame what they mean outside of all quotes.
bool is_bare(char frame) {
  return frame == '\n' || frame == ')' || frame == '}';
}

bool parts_words(char c) {
  return std::string_view(" \t\n;&|()").find(c) != std::string_view::npos;
}

}  // namespace

ShellText::Place ShellText::place() const {
  if (!lost_.empty() || open_.back() == '`' || open_.back() == 'e') return Place::nowhere;
  return comment_ ? Place::comment : Place::value;
}

std::string ShellText::why_nowhere() const {
  if (!lost_.empty()) return std::string(lost_);
  return open_.back() == '`' ? "in `…`" : "in $'…' of a shell that may not know such quotes";
}

void ShellText::lose(std::string_view why) {
  if (lost_.empty()) lost_ = why;
}

bool ShellText::within_quotes() const {
  return open_.find_first_of("\"q") != std::string::npos;
}

/// Whether the text ends in $NAME, of which a letter that follows would be a part.
bool ShellText::after_variable() const {
  constexpr std::string_view kName =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  const auto dollar = text_.find_last_not_of(kName);
  if (dollar == std::string::npos || text_[dollar] != '$' || dollar + 1 == text_.size())
    return false;
  const auto before = text_.find_last_not_of('\\', dollar - (dollar > 0 ? 1 : 0));
  const auto first = dollar == 0 ? 0 : before == std::string::npos ? 0 : before + 1;
  return (dollar - first) % 2 == 0;
}

void ShellText::take(char c) {
  text_ += c;
  if (!lost_.empty()) return;
  if (comment_ && c != '\n') return;
  comment_ = false;
  if (std::exchange(escaped_, false)) {
    pending_ = c == '\n' ? before_escape_ : Pending{};
    return;
  }
  const Pending before = std::exchange(pending_, {});
  const char frame = open_.back();
  if (frame == 'e') {
    if (c == '\'' && text_.ends_with("\\'"))
      lose("after \\' within $'…', where bash and dash differ");
    else if (c == '\'')
      open_.pop_back();
  } else if (c == '\\' && frame != '\'') {
    escaped_ = true;
    before_escape_ = before;
  } else if (frame == '\'' || frame == '`') {
    if (c == frame) open_.pop_back();
  } else if (frame == 'E') {
    if (c == '\'') open_.pop_back();
  } else if (c == '`') {
    open_ += c;
  } else if (!opens_after_dollar(c, before)) {
    pending_.dollar = c == '$' && !before.dollar;
    if (is_bare(frame))
      take_bare(c, before);
    else
      take_in_quotes(c, before);
  }
}

bool ShellText::opens_after_dollar(char c, const Pending& before) {
  if (!before.dollar) return false;
  const bool bare = is_bare(open_.back());
  if (c == '(') {
    open_ += ')';
    pending_ = {.opened = true, .word_start = true};
  } else if (c == '{') {
    open_ += bare ? '}' : 'q';
  } else if (c == '\'' && bare) {
    open_ += ansi_quotes_ ? 'E' : 'e';
  } else {
    return false;
  }
  return true;
}

void ShellText::take_in_quotes(char c, const Pending&) {
  const char frame = open_.back();
  if (frame == 'A') {
    if (c == '(') open_ += 'A';
    if (c == ')') open_.pop_back();
    if (c == '\'') lose("after a quote within $((…))");
  } else if (c == '"') {
    if (frame == '"')
      open_.pop_back();
    else
      open_ += '"';
  } else if (frame == 'q') {
    if (c == '}') open_.pop_back();
    // A quote to some shells, a plain character to others.
    if (c == '\'') lose("after a quote within \"${…}\"");
  }
}

void ShellText::take_bare(char c, const Pending& before) {
  const char frame = open_.back();
  if (c == '\'' || c == '"') {
    open_ += c;
    return;
  }
  if (frame == '}') {
    if (c == '}') open_.pop_back();
    return;
  }
  if (c == '(' && before.opened) {
    open_.back() = 'A';
    open_ += 'A';
    return;
  }
  if (c == '#' && before.word_start) comment_ = true;
  if (c == '<' && before.less == 1) ++here_documents_;
  if (c == '<' && before.less == 2) --here_documents_;  // <<< takes a word
  if (c == '\n' && here_documents_ > 0) lose("in or after a here-document");
  // The patterns of a case hold brackets that nothing opened.
  constexpr std::string_view kCase = "case";
  if (frame == ')' && parts_words(c) && within_quotes() && text_.size() > kCase.size() + 1 &&
      std::string_view(text_).substr(0, text_.size() - 1).ends_with(kCase) &&
      parts_words(text_[text_.size() - kCase.size() - 2]))
    lose("after `case` within \"$(…)\"");
  if (c == '(') open_ += ')';
  if (c == ')' && frame == ')') open_.pop_back();
  pending_.less = c == '<' ? before.less + 1 : 0;
  pending_.word_start = parts_words(c);
}

/// A shell reads arithmetic again after it has replaced what stands in it, bash with all that is in
/// brackets: what is no part of a number or name becomes an error there.
void ShellText::put_in_arithmetic(std::string_view value) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-*/% ";
  for (const char c : value) text_ += kPlain.find(c) == std::string_view::npos ? '@' : c;
}

void ShellText::put_in_single_quotes(std::string_view value) {
  for (const char c : value) {
    if (c == '\'')
      text_ += "'\\''";
    else
      text_ += c;
  }
}

void ShellText::put(std::string_view value, char next) {
  BERTH_ASSERT(place() == Place::value);
  const bool escaped = std::exchange(escaped_, false);
  const char frame = open_.back();
  pending_ = {};
  if (open_[open_.find_last_of("A)\n")] == 'A') {
    put_in_arithmetic(value);
  } else if (frame == '\'') {
    put_in_single_quotes(value);
  } else if (frame == 'E') {
    if (escaped) text_ += '\\';  // before a plain character it is one
    text_ += "''";               // ends this quote and opens a plain one
    put_in_single_quotes(value);
    text_ += "'$'";
  } else if (is_bare(frame)) {
    if (escaped) text_.pop_back();  // it would escape our quote
    if (after_variable()) text_ += "\"\"";
    std::string word = shell_quote(value);
    // bash makes several words of {1,2} and {1..2}.
    const bool expands =
        text_.find('{') != std::string::npos &&
        (value.find(',') != std::string::npos || value.find("..") != std::string::npos);
    if ((expands || next == '<' || next == '>') && word == value) word = "'" + word + "'";
    text_ += word;
  } else {
    if (escaped) text_ += '\\';  // before a plain character it is one
    if (frame == '"' && after_variable()) text_ += "\"\"";
    for (const char c : value) {
      if (frame == 'q' && c == '\'') {
        text_ += "\"'\"";  // alone it would begin a quote in bash
        continue;
      }
      if (std::string_view("$`\"\\").find(c) != std::string_view::npos ||
          (frame == 'q' && c == '}'))
        text_ += '\\';
      text_ += c;
    }
  }
}

}  // namespace berth::exec
