// From what a person wrote after `run:` to the words of a process.
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

/// A command as written: one text that may meet a shell, or words that do so only where they call
/// one: of `[bash, -c, …]` the script is such a text.
struct Command {
  std::string text;
  std::vector<std::string> words;       // when not empty, `text` is not used
  std::vector<std::string> shell = {};  // given a text that needs one; empty: the strict one
  bool operator==(const Command&) const = default;
};

/// What a declared name stands for; nullopt leaves the braces as they are.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

/// The shell that ends with the first command that fails, in a pipe too, or names what is not set.
/// Below an ssh server bash would read the person's .bashrc first.
inline constexpr std::array<std::string_view, 5> kStrictShell{"bash", "--norc", "-euo", "pipefail",
                                                              "-c"};
/// What older runs were submitted with, and `shell: sh` asks for.
inline constexpr std::array<std::string_view, 2> kPlainShell{"/bin/sh", "-c"};
/// What there is to do where a process that wanted the strict shell found no bash.
inline constexpr std::string_view kNoStrictShell =
    "a command with shell characters is run by bash -euo pipefail (dash has no pipefail): install "
    "bash there, or say shell: sh";
/// The words of `shell`, of the strict one where it is empty.
std::vector<std::string> words_of_shell(const std::vector<std::string>& shell);
/// The text that one of these two shells is given, as a person wrote it; nullopt for other words.
std::optional<std::string> text_for_shell(const std::vector<std::string>& line);
/// Whether the words are the shell's and a text for it.
template <std::size_t n>
bool is_given_to(const std::array<std::string_view, n>& shell,
                 const std::vector<std::string>& line) {
  return line.size() == n + 1 && std::equal(shell.begin(), shell.end(), line.begin());
}

/// Replaces the declared {name}s. A text with a shell metacharacter goes to its shell, each value
/// escaped for the quotes it stands in; any other is split at blanks and run directly, a value
/// always staying within its word. ${…}, braces around other names and those in comments stay.
std::vector<std::string> command_line(const Command& command, const Lookup& lookup);

/// What a declared name stands for, where that is a list: each value a word of its own, a text that
/// adjoins the name in front of the first and behind the last; within quotes, blanks between them.
using Lists = std::function<std::optional<std::vector<std::string>>(std::string_view name)>;
std::vector<std::string> command_line_of_lists(const Command& command, const Lists& lists);

/// The first declared name that stands where the shell would not leave its value whole (in `…`,
/// after a here-document, …), and so is not replaced; empty when there is none.
std::string misplaced_name(const Command& command, const Lookup& lookup);

/// Whether the text needs a shell to mean what it says.
bool needs_shell(std::string_view text);

/// What is wrong with a name in braces that is none of `known`, but nearly; empty where none is.
std::string nearly_named(const Command& command, const std::vector<std::string>& known);

/// Names in braces of the command, each once, in order.
std::vector<std::string> placeholders(const Command& command);

}  // namespace berth::exec
