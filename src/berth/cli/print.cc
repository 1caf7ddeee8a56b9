#include "berth/cli/print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "berth/base/visible.h"

namespace berth::cli {
namespace {

int failed_print = 0;  // an errno

}  // namespace

void print(std::string_view text) {
  const bool is_json = text.starts_with('{') || text.starts_with('[');
  print_exact(is_json ? visible_json(text) : visible_text(text));
}

void print_error(std::string_view text) {
  print_exact_error(visible_text(text));
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

int print_errno() {
  return failed_print;
}

}  // namespace berth::cli
