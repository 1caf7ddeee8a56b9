#include "berth/exec/command.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "berth/base/text.h"
#include "berth/exec/shell_text.h"

namespace berth::exec {
namespace {

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

/// The name when `text` begins with {name}, else empty. ${…} is the shell's: the caller looks back.
std::string_view placeholder_at(std::string_view text) {
  if (!text.starts_with('{')) return {};
  std::size_t end = 1;
  while (end < text.size() && name_char(text[end])) ++end;
  if (end == 1 || end >= text.size() || text[end] != '}') return {};
  return text.substr(1, end - 1);
}

/// Calls literal(c) for each plain character and value(name) for each placeholder that `known`
/// knows.
template <class Known, class Literal, class Value>
void scan(std::string_view text, Known known, Literal literal, Value value) {
  for (std::size_t at = 0; at < text.size();) {
    const bool shell_variable = at > 0 && text[at - 1] == '$';
    // {{name}} of a declared name is {name} itself.
    if (const auto quoted = text.substr(at).starts_with("{{") ? placeholder_at(text.substr(at + 1))
                                                              : std::string_view();
        !shell_variable && !quoted.empty() && known(quoted) &&
        text.substr(at + quoted.size() + 3).starts_with('}')) {
      for (const char c : text.substr(at + 1, quoted.size() + 2)) literal(c);
      at += quoted.size() + 4;
      continue;
    }
    const auto name = shell_variable ? std::string_view() : placeholder_at(text.substr(at));
    if (!name.empty() && known(name)) {
      at += name.size() + 2;
      value(name, at < text.size() ? text[at] : '\0');
    } else {
      literal(text[at]);
      ++at;
    }
  }
}

/// Adds the word, or the several that a list makes of it; none where it is but an empty list.
void add_words(std::string_view text, const Lists& lists, std::vector<std::string>& line) {
  std::vector<std::string> made{""};
  bool any = text.empty();  // a person's own empty word stays
  scan(
      text, [&](std::string_view name) { return lists(name).has_value(); },
      [&](char c) {
        made.back() += c;
        any = true;
      },
      [&](std::string_view name, char) {
        const auto list = *lists(name);
        for (std::size_t i = 0; i < list.size(); ++i) {
          if (i > 0) made.emplace_back();
          made.back() += list[i];
        }
        any = any || !list.empty();
      });
  if (any) std::ranges::move(made, std::back_inserter(line));
}

std::string_view program_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// True if $'…' is a quote with escapes to this shell. dash reads a dollar and a plain quote.
bool reads_ansi_quotes(std::string_view shell) {
  constexpr std::string_view kShells[]{"bash", "rbash", "zsh", "ksh", "ksh93", "mksh"};
  return std::ranges::find(kShells, program_of(shell)) != std::end(kShells);
}

/// Builds the text for the shell; names in `misplaced` those that could not be put.
std::string replace_for_shell(std::string_view text, std::string_view shell, const Lists& lists,
                              Misplaced* misplaced = nullptr) {
  ShellText result(reads_ansi_quotes(shell));
  const auto put_here = [&](std::string_view name) {
    if (!lists(name)) return false;
    if (result.place() == ShellText::Place::nowhere && misplaced && misplaced->name.empty())
      *misplaced = {std::string(name), result.why_nowhere()};
    return result.place() == ShellText::Place::value;
  };
  scan(
      text, put_here, [&](char c) { result.take(c); },
      [&](std::string_view name, char next) {
        const auto list = *lists(name);
        for (std::size_t i = 0; i < list.size(); ++i) {
          if (i > 0) result.take(' ');
          result.put(list[i], i + 1 < list.size() ? ' ' : next);
        }
      });
  return result.text();
}

Lists as_lists(const Lookup& lookup) {
  return [&lookup](std::string_view name) -> std::optional<std::vector<std::string>> {
    auto value = lookup(name);
    if (!value) return std::nullopt;
    return std::vector{*std::move(value)};
  };
}

/// Reserved words, and the builtins of bash and dash that a program in PATH cannot replace. The
/// others (echo, printf, test, [, true, false, pwd, kill) are programs too and do the same.
constexpr std::string_view kShellWords[] = {
    ".",         ":",       "alias",    "bg",      "bind",     "break",    "builtin", "caller",
    "case",      "cd",      "chdir",    "command", "compgen",  "complete", "compopt", "continue",
    "coproc",    "declare", "dirs",     "disown",  "do",       "done",     "elif",    "else",
    "enable",    "esac",    "eval",     "exec",    "exit",     "export",   "fc",      "fg",
    "fi",        "for",     "function", "getopts", "hash",     "help",     "history", "if",
    "in",        "jobs",    "let",      "local",   "logout",   "mapfile",  "popd",    "pushd",
    "read",      "return",  "select",   "set",     "readonly", "shift",    "shopt",   "source",
    "suspend",   "then",    "time",     "times",   "trap",     "type",     "typeset", "ulimit",
    "umask",     "unalias", "unset",    "until",   "wait",     "while",    "{",       "}",
    "readarray", "]]"};

/// True if bash would make several words of this one: {a,b} or {1..3}, also {a,{name}}.
bool has_brace_expansion(std::string_view word) {
  const auto open = word.find('{'), close = word.rfind('}');
  if (open == word.npos || close == word.npos || close < open) return false;
  const auto inside = word.substr(open, close - open);
  return inside.contains(',') || inside.contains("..");
}

/// Of a command of words, the one that a shell will read as its script; none where no shell is
/// called with -c.
std::optional<std::size_t> script_of(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 3> kShells{"bash", "dash", "sh"};
  if (words.empty()) return std::nullopt;
  if (std::ranges::find(kShells, program_of(words[0])) == kShells.end()) return std::nullopt;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string_view option = words[i];
    if (option.size() < 2 || option[0] != '-') return std::nullopt;
    if (option[1] == '-') continue;
    if (option.contains('c')) return i + 1 + (option.ends_with('o') ? 1 : 0);
    if (option.ends_with('o')) ++i;  // its argument follows
  }
  return std::nullopt;
}

}  // namespace

bool needs_shell(std::string_view text) {
  std::string plain;  // values never count, so that a plain letter replaces each placeholder
  scan(
      text, [](std::string_view) { return true; }, [&](char c) { plain += c; },
      [&](std::string_view name, char) { plain += name.contains("..") ? "{..}" : "_"; });
  if (plain.find_first_of("|&;<>()$`\\\"'*?[#~\n\r\v\f!") != std::string::npos) return true;
  const auto parts = words(plain);
  if (parts.empty()) return false;
  const auto first = parts.front();
  return std::ranges::any_of(parts, has_brace_expansion) || first.contains('=') ||
         first.starts_with('%') || std::ranges::find(kShellWords, first) != std::end(kShellWords);
}

std::vector<std::string> words_of_shell(const std::vector<std::string>& shell) {
  return shell.empty() ? std::vector<std::string>(kStrictShell.begin(), kStrictShell.end()) : shell;
}

std::optional<std::string> text_for_shell(const std::vector<std::string>& line) {
  if (!is_given_to(kStrictShell, line) && !is_given_to(kPlainShell, line)) return std::nullopt;
  return line.back();
}

std::vector<std::string> command_line(const Command& command, const Lookup& lookup) {
  return command_line_of_lists(command, as_lists(lookup));
}

std::vector<std::string> command_line_of_lists(const Command& command, const Lists& lists) {
  if (command.words.empty() && needs_shell(command.text)) {
    auto line = words_of_shell(command.shell);
    line.push_back(replace_for_shell(command.text, line.front(), lists));
    return line;
  }
  std::vector<std::string> line;
  const auto script = script_of(command.words);
  for (std::size_t i = 0; i < command.words.size(); ++i)
    if (i == script)
      line.push_back(replace_for_shell(command.words[i], command.words.front(), lists));
    else
      add_words(command.words[i], lists, line);
  if (command.words.empty())
    for (const auto word : words(command.text)) add_words(word, lists, line);
  return line;
}

Misplaced misplaced_name(const Command& command, const Lookup& lookup) {
  Misplaced misplaced;
  const auto script = script_of(command.words);
  if (script && *script < command.words.size())
    replace_for_shell(command.words[*script], command.words.front(), as_lists(lookup), &misplaced);
  else if (command.words.empty() && needs_shell(command.text))
    replace_for_shell(command.text, words_of_shell(command.shell).front(), as_lists(lookup),
                      &misplaced);
  return misplaced;
}

std::string misplaced_text(const Command& command, const Lookup& lookup) {
  const auto misplaced = misplaced_name(command, lookup);
  if (misplaced.name.empty()) return {};
  return fmt::format(
      "{{{0}}} is {1}, where the shell could split or change its value; assign it to a variable "
      "first (v={{{0}}}) and use \"$v\" here",
      misplaced.name, misplaced.place);
}

std::string nearly_named(const Command& command, const std::vector<std::string>& known) {
  for (const auto& name : placeholders(command)) {
    if (std::ranges::find(known, name) != known.end()) continue;
    if (const auto meant = near_miss(name, known); !meant.empty())
      return fmt::format(
          "unknown name {{{}}}; did you mean {{{}}}? (Braces with a blank in them stay.)", name,
          meant);
  }
  return {};
}

std::vector<std::string> placeholders(const Command& command) {
  std::vector<std::string> names;
  std::set<std::string, std::less<>> known;
  const auto gather = [&](std::string_view text) {
    scan(
        text, [](std::string_view) { return true; }, [](char) {},
        [&](std::string_view name, char) {
          if (known.emplace(name).second) names.emplace_back(name);
        });
  };
  for (const auto& word : command.words) gather(word);
  if (command.words.empty()) gather(command.text);
  return names;
}

}  // namespace berth::exec
