// The shell finds a hostile value where it finds a harmless one. The text is made of fragments that
// can do no harm whatever they add up to, for it is run.
#include "berth/exec/command.h"

#include <array>
#include <string>

#include "berth/testing/shell.h"
#include "fuzz.h"

namespace {

using berth::exec::Command;

constexpr std::string_view kHarmless = "QqQ";
constexpr std::size_t kMostFragments = 24, kMostBytes = 12;
// No letter of a value makes the name of a program, a keyword, a path or an assignment.
constexpr std::string_view kBytes = "'\"`$\\ \n;&|<>(){}#~*?[]!x^-";
constexpr std::array<std::string_view, 20> kFragments{
    "{a}", " p {a} ", "'",  "\"",    " ", "\\", "\n",  "# ", "(p ", "$(p ",
    ")",   ";p ",     "\\", "${n:-", "}", "$n", " p ", "`",  "$v",  "x"};

berth::exec::Lookup lookup(std::string_view value) {
  return [value](std::string_view name) {
    return name == "a" ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::string output(const std::string& text, std::string_view value, const std::string& shell) {
  const auto argv = berth::exec::command_line({text, {}}, lookup(value));
  BERTH_ASSERT(berth::exec::is_given_to(berth::exec::kStrictShell, argv));
  return berth::shell_output(
      "exec 2>/dev/null </dev/null\n" +
          std::string("PATH=; IFS=; set -f; v=V; p() { printf '%s|' \"$@\"; }\n") + argv.back(),
      shell);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

void check_direct(std::string_view text) {
  const Command command{std::string(text), {}};
  const auto argv = berth::exec::command_line(command, lookup(" ' $(x)"));
  if (berth::exec::needs_shell(text))
    BERTH_ASSERT(berth::exec::is_given_to(berth::exec::kStrictShell, argv));
  else
    BERTH_ASSERT(argv.size() == berth::words(text).size());
  const auto none = [](std::string_view) { return std::optional<std::string>(); };
  if (berth::exec::needs_shell(text))
    BERTH_ASSERT(berth::exec::command_line(command, none).back() == text);
}

}  // namespace

void berth::fuzz(std::string_view input) {
  check_direct(input);
  const auto [choices, bytes] = halves(input);
  std::string text = "p ok;";
  for (const char c : choices.substr(0, kMostFragments))
    text += kFragments[static_cast<unsigned char>(c) % kFragments.size()];
  std::string value;
  for (const char c : bytes.substr(0, kMostBytes))
    value += kBytes[static_cast<unsigned char>(c) % kBytes.size()];
  // $(…) drops newlines at its end, and arithmetic makes its own sense of a name.
  if (value.ends_with('\n') || text.find("{a}") == std::string::npos) return;
  if (text.find("$((") != std::string::npos) return;
  for (const std::string shell : {"/bin/sh", "bash"}) {
    const auto harmless = output(text, kHarmless, shell);
    const auto expected = replaced(harmless, kHarmless, value);
    const auto found = output(text, value, shell);
    if (found != expected)
      std::fprintf(stderr, "shell %s\ntext  %s\nvalue %s\nfound %s\nwants %s\n", shell.c_str(),
                   text.c_str(), value.c_str(), found.c_str(), expected.c_str());
    BERTH_ASSERT(found == expected);
  }
}
