// These functions turn what a person wrote after `run:` into the words of a process. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"

namespace berth::exec {

/// A command as it was written: either one text, which is given to a shell where it needs one, or a
/// list of words, which never is. Where the words themselves call a shell, as `[bash, -c, …]` do,
/// the script among them is treated as a text.
struct Command {
  std::string text;
  std::vector<std::string> words;       ///< Where this is not empty, `text` is not used.
  std::vector<std::string> shell = {};  ///< For a text that needs a shell; empty: the strict one.
  bool operator==(const Command&) const = default;
};

/// What a declared name stands for; nullopt leaves the braces as they are.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

/// The strict shell ends with the first command that fails, in a pipe too, or that uses a variable
/// which is not set. It takes --norc because bash below an ssh server reads the person's .bashrc.
inline constexpr std::array<std::string_view, 5> kStrictShell{"bash", "--norc", "-euo", "pipefail",
                                                              "-c"};
/// The shell of runs that an older Berth submitted, and of `shell: sh`.
inline constexpr std::array<std::string_view, 2> kPlainShell{"/bin/sh", "-c"};
/// The advice where a process wanted the strict shell and found no bash.
inline constexpr std::string_view kNoStrictShell =
    "a command with shell characters is run by bash -euo pipefail (dash has no pipefail): install "
    "bash on the machine, or write shell: sh";
/// The words of `shell`; those of the strict one where it is empty.
std::vector<std::string> words_of_shell(const std::vector<std::string>& shell);
/// The text that `line` gives to one of these two shells, as a person wrote it; nullopt where it
/// calls neither.
std::optional<std::string> text_for_shell(const std::vector<std::string>& line);
/// Whether `line` is the words of `shell` and one text for it.
template <std::size_t n>
bool is_given_to(const std::array<std::string_view, n>& shell,
                 const std::vector<std::string>& line) {
  return line.size() == n + 1 && std::equal(shell.begin(), shell.end(), line.begin());
}

/// The words of the process, with the declared {name}s replaced. A text that needs_shell() is given
/// to its shell, where each value is escaped for the quotes it stands in. Any other text is split
/// at blanks and run directly, and a value always stays within its word. ${…}, braces around other
/// names, and those in comments stay as they are.
std::vector<std::string> command_line(const Command& command, const Lookup& lookup);

/// What a declared name stands for, where that is a list. Each value becomes a word of its own;
/// text that adjoins the name stays in front of the first or behind the last one. Within quotes the
/// values have blanks between them.
using Lists = std::function<std::optional<std::vector<std::string>>(std::string_view name)>;
std::vector<std::string> command_line_of_lists(const Command& command, const Lists& lists);

/// A declared name that is not replaced, because the shell would not leave its value whole there.
struct Misplaced {
  std::string name = {};   ///< Empty: there is none.
  std::string place = {};  ///< "in `…`", "after a here-document".
};
/// Returns the first such name of the command.
Misplaced misplaced_name(const Command& command, const Lookup& lookup);
/// Returns an error message about that name that says what to write; "" when there is none.
std::string misplaced_text(const Command& command, const Lookup& lookup);

/// Returns true if a shell would do more with the text than split it at blanks: quotes, operators
/// and expansions (braces as well), assignments in front, reserved words, and builtins that are not
/// programs.
bool needs_shell(std::string_view text);

/// A message about a name in braces that is nearly one of `known`; "" when there is none.
std::string nearly_named(const Command& command, const std::vector<std::string>& known);

/// The names that stand in braces in the command, each once, in their order.
std::vector<std::string> placeholders(const Command& command);

}  // namespace berth::exec
