#include "berth/ignore/ignore.h"

#include <fmt/core.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "berth/base/text.h"

namespace berth::ignore {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kSpecial = "*?[\\";

/// Blanks at the end do not count, but behind a backslash.
std::string_view without_blanks(std::string_view line) {
  std::size_t end = 0;  // behind the last sign that counts
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == ' ') continue;
    if (line[at] == '\\') ++at;
    end = std::min(at + 1, line.size());
  }
  return line.substr(0, end);
}

bool within(char first, char c, char last) {
  return first <= c && c <= last;
}

/// [:alpha:] and its like, of bytes below 128. nullopt: there is no such class.
std::optional<bool> in_class(std::string_view name, char c) {
  const bool upper = within('A', c, 'Z'), lower = within('a', c, 'z'), digit = within('0', c, '9');
  const bool graphic = within('!', c, '~');
  const std::array<std::pair<std::string_view, bool>, 12> classes{{
      {"alnum", upper || lower || digit},
      {"alpha", upper || lower},
      {"blank", c == ' ' || c == '\t'},
      {"cntrl", within('\0', c, '\x1f') || c == '\x7f'},
      {"digit", digit},
      {"graph", graphic},
      {"lower", lower},
      {"print", graphic || c == ' '},
      {"punct", graphic && !upper && !lower && !digit},
      {"space", c == ' ' || within('\t', c, '\r')},
      {"upper", upper},
      {"xdigit", digit || within('A', c, 'F') || within('a', c, 'f')},
  }};
  for (const auto& [each, is_in] : classes)
    if (each == name) return is_in;
  return std::nullopt;
}

/// One bracket expression, read from behind its '['.
class Bracket {
 public:
  explicit Bracket(std::string_view pattern) : rest_(pattern) {}

  /// nullopt: it has no end, or names an unknown class.
  std::optional<bool> holds(char c) {
    const bool negated = rest_.starts_with('!') || rest_.starts_with('^');
    if (negated) rest_.remove_prefix(1);
    bool found = false;
    do {  // a ']' in front is one of the signs
      const auto one = next(c);
      if (!one) return std::nullopt;
      found = found || *one;
    } while (!rest_.starts_with(']'));
    rest_.remove_prefix(1);
    return found != negated;
  }
  /// What follows it.
  std::string_view rest() const { return rest_; }

 private:
  /// A sign, a range or a class: whether c is in it.
  std::optional<bool> next(char c) {
    if (rest_.starts_with("[:")) {
      const auto end = rest_.find(']', 2);
      if (end == kNone) return std::nullopt;
      if (end > 2 && rest_[end - 1] == ':') {
        const auto is_in = in_class(rest_.substr(2, end - 3), c);
        rest_.remove_prefix(end + 1);
        return is_in;
      }
    }
    const auto first = sign();
    if (!first) return std::nullopt;
    bool is_in = *first == c;
    if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
      rest_.remove_prefix(1);
      const auto last = sign();
      if (!last) return std::nullopt;
      const auto code = [](char of) { return static_cast<unsigned char>(of); };
      is_in = is_in || (code(*first) <= code(c) && code(c) <= code(*last));
    }
    return is_in;
  }
  std::optional<char> sign() {
    if (rest_.starts_with('\\')) rest_.remove_prefix(1);
    if (rest_.empty()) return std::nullopt;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  std::string_view rest_;
};

/// Where a star goes on when what follows it did not fit: it takes one sign more.
struct Star {
  std::string_view pattern, text;  // what is left behind it
  bool whole_names = false;        // it takes up to behind a '/'
  bool is_set = false;
};

/// A whole text against a pattern with stars. In a path a single star, '?' and brackets match no
/// '/', and "**" that stands for whole names matches any of them. Only the last star of each kind
/// has to be tried again: what stood before it lies as far in front as it can.
class Glob {
 public:
  Glob(std::string_view pattern, std::string_view text, bool is_path)
      : pattern_(pattern), text_(text), from_(pattern), is_path_(is_path) {}

  bool matches() {
    for (;;) {
      if (pattern_.empty() && text_.empty()) return true;
      if (pattern_.starts_with('*') ? take_stars() : take_sign()) continue;
      if (!retry(single_) && !retry(many_)) return false;
    }
  }

 private:
  bool take_stars() {
    const std::size_t at = from_.size() - pattern_.size();
    const std::size_t stars = std::min(pattern_.find_first_not_of('*'), pattern_.size());
    const bool begins = at == 0 || from_[at - 1] == '/';
    pattern_.remove_prefix(stars);
    const bool ends = pattern_.empty() || pattern_.starts_with('/') || pattern_.starts_with("\\/");
    const bool is_many = !is_path_ || (stars > 1 && begins && ends);
    if (is_many && is_path_ && pattern_.starts_with('/')) {
      pattern_.remove_prefix(1);
      many_ = {pattern_, text_, true, true};
    } else {
      (is_many ? many_ : single_) = {pattern_, text_, false, true};
    }
    if (is_many) single_ = {};
    return true;
  }

  bool take_sign() {
    if (pattern_.empty() || text_.empty()) return false;
    const char c = text_.front();
    if (pattern_.starts_with('[')) {
      Bracket bracket(pattern_.substr(1));
      if (!bracket.holds(c).value_or(false) || (is_path_ && c == '/')) return false;
      pattern_ = bracket.rest();
    } else {
      const bool any = pattern_.starts_with('?') && !(is_path_ && c == '/');
      if (pattern_.starts_with('\\')) {
        pattern_.remove_prefix(1);
        if (pattern_.empty() || pattern_.front() != c) return false;
      } else if (!any && (pattern_.starts_with('?') || pattern_.front() != c)) {
        return false;
      }
      pattern_.remove_prefix(1);
    }
    text_.remove_prefix(1);
    return true;
  }

  bool retry(Star& star) {
    if (!star.is_set) return false;
    const bool crosses = &star == &many_;
    const auto step = star.whole_names ? star.text.find('/') : 0;
    if (step == kNone || star.text.empty() || (!crosses && is_path_ && star.text[0] == '/'))
      return star = {}, false;
    star.text.remove_prefix(step + 1);
    pattern_ = star.pattern;
    text_ = star.text;
    if (crosses) single_ = {};
    return true;
  }

  std::string_view pattern_, text_;  // what is left of them
  const std::string_view from_;
  const bool is_path_;
  Star single_, many_;
};

bool matches_path(std::string_view pattern, std::string_view path) {
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  // git compares what stands before the first special sign by itself, and takes the rest for a
  // pattern of its own: a "**" that follows a name stands for whole names there.
  const auto literal = std::min(pattern.find_first_of(kSpecial), pattern.size());
  if (!path.starts_with(pattern.substr(0, literal))) return false;
  return Glob(pattern.substr(literal), path.substr(literal), true).matches();
}

std::string_view parent(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == kNone ? std::string_view() : path.substr(0, slash);
}

}  // namespace

std::vector<Pattern> parse(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // that the text is UTF-8
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  std::vector<Pattern> patterns;
  int number = 0;
  for (auto line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_blanks(line.substr(0, line.find('\0')));
    if (line.empty() || line.starts_with('#')) continue;
    Pattern pattern{.text = {}, .line = number};
    pattern.brings_back = line.starts_with('!');
    if (pattern.brings_back) line.remove_prefix(1);
    pattern.directories_only = line.ends_with('/');
    if (pattern.directories_only) line.remove_suffix(1);
    pattern.any_depth = !line.contains('/');
    pattern.text = line;
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

bool matches(const Pattern& pattern, std::string_view path, bool is_directory) {
  if (pattern.directories_only && !is_directory) return false;
  if (!pattern.any_depth) return matches_path(pattern.text, path);
  const auto name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return Glob(pattern.text, name, false).matches();
}

void Rules::add(std::string_view directory, Source source, std::string_view text) {
  if (auto patterns = parse(text); !patterns.empty())
    files_[std::string(directory)][static_cast<std::size_t>(source)] = std::move(patterns);
}

std::optional<std::string> Rules::leaves_out(std::string_view path, bool is_directory) const {
  for (std::size_t source = 0; source < kFileNames.size(); ++source) {
    for (auto above = parent(path);; above = parent(above)) {
      const std::string directory(above);
      const std::string front = directory.empty() ? "" : directory + "/";
      const auto files = files_.find(directory);
      if (files != files_.end()) {
        for (const auto& pattern : std::views::reverse(files->second[source])) {
          if (!matches(pattern, path.substr(front.size()), is_directory)) continue;
          if (pattern.brings_back) return std::nullopt;
          return fmt::format("{}{}:{}", front, kFileNames[source], pattern.line);
        }
      }
      if (above.empty()) break;
    }
  }
  return std::nullopt;
}

std::string line_bringing_back(std::string_view path) {
  std::string line = "!/";
  for (const char c : path) {
    if (kSpecial.contains(c) || c == ' ') line += '\\';
    line += c;
  }
  return line;
}

}  // namespace berth::ignore
