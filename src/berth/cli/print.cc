#include "berth/cli/print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "berth/base/visible.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostNotes = 20;

int failed_print = 0;  // an errno

/// Makes text visible, but for the colours of render::state_in_colour(). Text of others may colour
/// itself so, and nothing else; the colour ends with the text.
std::string coloured(std::string_view text) {
  constexpr auto kColours =
      std::to_array<std::string_view>({"\033[31m", "\033[32m", "\033[33m", "\033[34m", "\033[0m"});
  std::string visible;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find('\033', at)) != text.npos; ++at)
    for (const auto colour : kColours)
      if (text.substr(at).starts_with(colour)) {
        visible += visible_text(text.substr(from, at - from));
        visible += colour;
        from = at + colour.size();
      }
  visible += visible_text(text.substr(from));
  return from > 0 ? visible.append(kColours.back()) : visible;
}

}  // namespace

void print(std::string_view text) {
  const bool is_json = text.starts_with('{') || text.starts_with('[');
  print_exact(is_json ? visible_json(text) : has_colours() ? coloured(text) : visible_text(text));
}

void print_error(std::string_view text) {
  print_exact_error(visible_text(text));
}

void print_notes(const std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i)
    print_error(fmt::format("note: {}\n", notes[i]));
  if (notes.size() > kMostNotes)
    print_error(fmt::format("note: {} more of the kind\n", notes.size() - kMostNotes));
}

void print_exact(std::string_view bytes) {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  if (!written || std::fflush(stdout) != 0) note_failed_print(errno);
}

void print_exact_error(std::string_view bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

void note_failed_print(int number) {
  if (number != EPIPE && number != EBADF) failed_print = number;
}

void print(const render::Table& table) {
  print_exact(render::to_text(table, view()));  // whose cells are visible text
}

render::View view() {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  return {.width = is_terminal ? terminal_width() : 0, .has_colours = has_colours()};
}

bool has_colours() {
  const char* const off = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (off == nullptr || *off == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

int terminal_width() {
  constexpr int kUnknown = 80;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUnknown;
}

Status print_to(os::Env& env, const std::string& file, const std::string& text) {
  if (!file.empty() && file != "-") return env.replace_user_file(file, text);
  print(text);
  return {};
}

int print_errno() {
  return failed_print;
}

}  // namespace berth::cli
