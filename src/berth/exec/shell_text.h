// A ShellText is a text for bash or dash that is being written. It knows at each point how the
// shell will read the next character, so that a value can be put there and stays one value whatever
// it holds. Pure.
#pragma once

#include <string>
#include <string_view>

namespace berth::exec {

class ShellText {
 public:
  /// `ansi_quotes`: the shell is known to read $'…' as bash does. Otherwise it may be dash, which
  /// reads a dollar and a plain quote.
  explicit ShellText(bool ansi_quotes) : ansi_quotes_(ansi_quotes) {}

  enum class Place {
    value,    ///< put() may be called.
    comment,  ///< The shell passes over what stands here.
    nowhere,  ///< Nothing can be put here safely: see why_nowhere().
  };
  Place place() const;
  /// Where the text is while place() is `nowhere`, such as "after a here-document".
  std::string why_nowhere() const;

  /// Adds the next character as the person wrote it.
  void take(char c);
  /// Adds a value, escaped for where it stands; place() must be `value`. `next` is the character
  /// that will follow (0: none), for before '<' a number would be a descriptor.
  void put(std::string_view value, char next);

  const std::string& text() const { return text_; }

 private:
  /// What the last character leaves for the next to complete; survives a line continuation.
  struct Pending {
    bool dollar = false;      // $
    int less = 0;             // < in a row
    bool opened = false;      // $(
    bool word_start = false;  // a # would begin a comment
  };
  void lose(std::string_view why);
  void put_in_single_quotes(std::string_view value);
  void put_in_arithmetic(std::string_view value);
  void take_in_quotes(char c, const Pending& before);
  void take_bare(char c, const Pending& before);
  bool opens_after_dollar(char c, const Pending& before);
  bool within_quotes() const;
  bool after_variable() const;

  std::string text_;
  // What is open, innermost last: ' " ` ) as they will be closed; } of a ${ outside quotes and q
  // within them; A for each bracket of $((; E of a $' and e of one in a shell that may be dash. The
  // ground is \n.
  std::string open_ = "\n";
  Pending pending_{.word_start = true};
  Pending before_escape_;
  bool escaped_ = false;
  bool comment_ = false;
  int here_documents_ = 0;      // that begin with the next line
  std::string_view lost_ = {};  // why nothing is known for sure from here on; empty: all is known
  const bool ansi_quotes_;
};

}  // namespace berth::exec
