#include "berth/base/broken_yaml.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/text.h"

namespace berth {
namespace {

constexpr std::size_t kDeepestBrackets = 64;
constexpr std::string_view kBlank = " \t\r";

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

bool is_blank_at(std::string_view text, std::size_t at) {
  return at >= text.size() || kBlank.contains(text[at]) || text[at] == '\n';
}

char closing(char open) {
  return open == '[' ? ']' : '}';
}

/// The position behind the quote that ends what begins at `at`; npos where none does.
std::size_t end_of_quote(std::string_view text, std::size_t at, char quote) {
  for (; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || !text.substr(at + 1).starts_with('\'')) return at + 1;
      ++at;
    }
  }
  return std::string_view::npos;
}

/// Goes over quotes, brackets, comments and blocks of text, and finds the first of them that is
/// not as it has to be.
class Outline {
 public:
  explicit Outline(std::string_view text) : lines_(split(text, '\n')) {}

  std::optional<BrokenYaml> trouble() {
    for (line_ = 1; line_ <= static_cast<int>(lines_.size()) && !trouble_; ++line_)
      read_line(lines_[static_cast<std::size_t>(line_) - 1]);
    if (trouble_) return trouble_;
    if (quote_ != 0) return not_closed(quote_, quote_line_);
    if (open_.empty()) return std::nullopt;
    return not_closed(open_.back().first, open_.back().second);
  }

 private:
  static BrokenYaml not_closed(char what, int line) {
    if (what == '\'' || what == '"')
      return {line, fmt::format("the quote {} that begins here is not closed", what)};
    return {line, fmt::format("the '{}' that begins here is not closed: expected '{}'", what,
                              closing(what))};
  }

  void read_line(std::string_view line) {
    const bool empty = trim(line).empty();
    if (in_block_ && (empty || indent_of(line) > block_indent_)) return;
    in_block_ = false;
    fresh_ = fresh_ || open_.empty();
    if (quote_ == 0) closed_ = 0;
    std::size_t at = 0;
    if (quote_ != 0) {
      at = end_of_quote(line, 0, quote_);
      if (at == std::string_view::npos) return;
      close_quote(line.substr(at));
    } else {
      at = indent_of(line);
    }
    while (at < line.size() && !trouble_ && !in_block_) at = read_char(line, at);
  }

  /// The position behind what stands there.
  std::size_t read_char(std::string_view line, std::size_t at) {
    const char c = line[at];
    if (kBlank.contains(c)) return at + 1;
    if (c == '#' && is_blank_at(line, at - 1)) return line.size();
    if (closed_ != 0 && open_.empty() && c != ':' && !fresh_) return complain_of_rest(line, at);
    if (fresh_ && (c == '\'' || c == '"')) return read_quote(line, at);
    if ((fresh_ || !open_.empty()) && (c == '[' || c == '{')) {
      open_.emplace_back(c, line_);
      if (open_.size() > kDeepestBrackets) trouble_ = {line_, "nested too deep"};
      fresh_ = true;
      return at + 1;
    }
    if (!open_.empty() && (c == ']' || c == '}')) return close_bracket(c, at);
    if (!open_.empty() && c == ',') {
      fresh_ = true;
    } else if (c == ':' && (is_blank_at(line, at + 1) || (closed_ != 0 && !open_.empty()))) {
      fresh_ = true;
      closed_ = 0;
    } else if (fresh_ && (c == '-' || c == '?') && is_blank_at(line, at + 1)) {
      return at + 1;
    } else if (fresh_ && (c == '|' || c == '>') && open_.empty()) {
      in_block_ = true;
      block_indent_ = indent_of(line);
    } else if (fresh_ && (c == '&' || c == '!')) {
      return std::min(line.find(' ', at), line.size());
    } else {
      fresh_ = false;
    }
    return at + 1;
  }

  std::size_t read_quote(std::string_view line, std::size_t at) {
    const auto end = end_of_quote(line, at + 1, line[at]);
    quote_ = line[at];
    quote_line_ = line_;
    if (end == std::string_view::npos) return line.size();
    close_quote(line.substr(end));
    return end;
  }

  void close_quote(std::string_view rest) {
    closed_ = std::exchange(quote_, '\0');
    fresh_ = false;
    const auto next = rest.find_first_not_of(kBlank);
    const bool goes_on = next != std::string_view::npos && rest[next] != '#' && rest[next] != ':' &&
                         (open_.empty() || !std::string_view(",]}").contains(rest[next]));
    // A quote over several lines that text follows: it closed none, but opened another.
    if (goes_on && quote_line_ < line_) trouble_ = not_closed(closed_, quote_line_);
  }

  std::size_t close_bracket(char c, std::size_t at) {
    const auto [open, line] = open_.back();
    if (closing(open) != c)
      trouble_ = {line_, fmt::format("'{}' closes the '{}' of line {}: expected '{}'", c, open,
                                     line, closing(open))};
    open_.pop_back();
    closed_ = c;
    fresh_ = false;
    return at + 1;
  }

  std::size_t complain_of_rest(std::string_view line, std::size_t at) {
    const bool quote = closed_ == '\'' || closed_ == '"';
    trouble_ = {line_, fmt::format("'{}' follows the {} of a value; put all of the value in {}",
                                   clip(trim(line.substr(at)), 40),
                                   quote ? "closed quote" : "closed bracket",
                                   quote ? "other quotes" : "quotes")};
    return line.size();
  }

  const std::vector<std::string_view> lines_;
  int line_ = 1;
  std::vector<std::pair<char, int>> open_;  // brackets, and their lines
  char quote_ = 0;                          // that is open
  int quote_line_ = 0;
  char closed_ = 0;    // the quote or bracket that has just ended a value
  bool fresh_ = true;  // a value may begin here
  bool in_block_ = false;
  std::size_t block_indent_ = 0;
  std::optional<BrokenYaml> trouble_;
};

/// A line as "key: value"; a list's "- " in front counts as indentation.
struct Entry {
  std::size_t indent = 0;
  std::string_view key;  // empty: the line is no entry
  std::string_view value;
};

Entry entry_of(std::string_view line) {
  Entry entry{.indent = indent_of(line), .key = {}, .value = {}};
  auto rest = line.substr(entry.indent);
  while (rest.starts_with("- ")) {
    const auto skipped = std::min(rest.find_first_not_of(' ', 1), rest.size());
    entry.indent += skipped;
    rest.remove_prefix(skipped);
  }
  for (auto colon = rest.find(':'); colon != std::string_view::npos;
       colon = rest.find(':', colon + 1)) {
    if (!is_blank_at(rest, colon + 1)) continue;
    entry.key = trim(rest.substr(0, colon));
    entry.value = trim(rest.substr(colon + 1));
    return entry;
  }
  entry.value = trim(rest);
  return entry;
}

/// The mistakes of lines: tabs, signs that mean something to YAML, indentation.
class Lines {
 public:
  Lines(std::string_view text, int line) : lines_(split(text, '\n')) {
    at_ = std::min(static_cast<std::size_t>(std::max(line, 1)) - 1, lines_.size() - 1);
    while (at_ > 0 && trim(lines_[at_]).empty()) --at_;
  }

  BrokenYaml explain(std::string_view message) const {
    if (message.starts_with("a key must")) return in(at_, std::string(message));  // of ours
    for (const std::size_t at : {at_, before(at_)})
      if (lines_[at].substr(0, lines_[at].find_first_not_of(kBlank)).contains('\t'))
        return in(at, "begins with a tab: indent with blanks");
    for (const std::size_t at : {at_, before(at_)})
      if (lines_[at].starts_with('%'))
        return in(at, "begins with '%': YAML keeps such lines for itself; remove it, or indent it");
    if (auto found = signs(message)) return *std::move(found);
    if (auto found = indentation()) return *std::move(found);
    return in(at_, "is neither 'key: value' nor '- item', as YAML has it here");
  }

 private:
  BrokenYaml in(std::size_t at, std::string what) const {
    return {static_cast<int>(at) + 1, std::move(what)};
  }
  std::size_t before(std::size_t at) const {
    while (at > 0) {
      const auto line = trim(lines_[--at]);
      if (!line.empty() && !line.starts_with('#')) return at;
    }
    return at;
  }

  std::optional<BrokenYaml> signs(std::string_view message) const {
    const Entry entry = entry_of(lines_[at_]);
    const auto value = entry.value;
    if (message.contains("escape") || message.contains("hexdecimal"))
      return in(at_, fmt::format("{}{}within double quotes '\\' begins an escape; in single quotes "
                                 "it stays as it is",
                                 entry.key, entry.key.empty() ? "" : ": "));
    if (message.contains("node content") && lines_[at_].find_first_of("[{,") != std::string::npos)
      return in(at_,
                "within [...] and {...}, do not leave out a value between commas, and quote a "
                "value that begins with ':'");
    if (message.contains("unexpected ':'"))
      return in(at_, "within {...}, write a blank after ':', or quote the value");
    if (trim(lines_[at_]).starts_with("-\t")) return in(at_, "a tab follows '-': write a blank");
    const auto star = lines_[at_].find('*');
    if (message.contains("anchor is not defined") && star != std::string_view::npos) {
      const auto name = lines_[at_].substr(star + 1);
      const auto end = std::min(name.find_first_of(" ,]}\r"), name.size());
      if (end > 0 && std::ranges::all_of(name.substr(0, end), [](char c) {
            return std::string_view("*./?[").find(c) == std::string_view::npos;
          }))
        return in(
            at_,
            fmt::format("*{0}: no anchor &{0} is defined above; quote a value that begins with '*'",
                        clip(name.substr(0, end))));
    }
    if (!value.empty() && std::string_view("*&!@%`").contains(value[0]))
      return in(at_, fmt::format("quote a value that begins with '{}': {}'{}'", value[0],
                                 entry.key.empty() ? "" : std::string(entry.key) + ": ",
                                 clip(value, 60)));
    const bool plain = !value.empty() && !std::string_view("'\"[{|>").contains(value[0]);
    if (!entry.key.empty() && plain && (value.contains(": ") || value.ends_with(':')))
      return in(at_, fmt::format("quote a value that contains ': ': {}: '{}'", entry.key,
                                 clip(value, 60)));
    return std::nullopt;
  }

  std::optional<BrokenYaml> indentation() const {
    const Entry entry = entry_of(lines_[at_]);
    const std::size_t above = before(at_);
    const Entry previous = entry_of(lines_[above]);
    if (above == at_) return std::nullopt;
    if (entry.key.empty())
      return in(at_, fmt::format("'{}': expected 'key: value'{}", clip(entry.value, 40),
                                 entry.value.contains(':') ? "; a blank is missing after ':'"
                                                           : "; a ':' is missing"));
    const bool item = trim(lines_[above]).starts_with('-');
    if (previous.key.empty() && !item && entry.indent >= previous.indent)
      return in(above, fmt::format("'{}': a ':' is missing after it", clip(previous.value, 40)));
    if (entry.indent > previous.indent && !previous.value.empty())
      return in(at_, fmt::format("'{}' is indented further than '{}' in line {}, which has a value "
                                 "already; indent all keys of a map equally",
                                 clip(entry.key, 40), clip(previous.key, 40), above + 1));
    if (entry.indent < previous.indent)
      return in(at_, fmt::format("'{}' is in column {}, where no key above it begins; indent all "
                                 "keys of a map equally",
                                 clip(entry.key, 40), entry.indent + 1));
    return std::nullopt;
  }

  const std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
};

}  // namespace

BrokenYaml explain_yaml(std::string_view text, int line, std::string_view message) {
  if (const auto trouble = Outline(text).trouble(); trouble && trouble->line <= line + 1)
    return *trouble;
  return Lines(text, line).explain(message);
}

}  // namespace berth
