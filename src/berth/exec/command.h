// From what a person wrote after `run:` to the words of a process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"

namespace berth::exec {

/// A command as written: one text that may meet a shell, or words that never do.
struct Command {
  std::string text;
  std::vector<std::string> words;  // when not empty, `text` is not used
  bool operator==(const Command&) const = default;
};

/// What a declared name stands for; nullopt leaves the braces as they are.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

/// Replaces the declared {name}s. A text with a shell metacharacter goes to /bin/sh -c, each value
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

/// Names in braces of the command, each once, in order.
std::vector<std::string> placeholders(const Command& command);

}  // namespace berth::exec
